// What the Go client needs that openapi-generator makes from docs/openapi.yaml; the folder gateway is generated.
module client

go 1.26

require gopkg.in/validator.v2 v2.0.1
