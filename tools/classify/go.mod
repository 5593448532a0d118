module mobilegateway/tools/classify

go 1.26.0

tool github.com/google/licenseclassifier/v2/tools/identify_license

require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/google/licenseclassifier/v2 v2.0.0 // indirect
	github.com/sergi/go-diff v1.1.0 // indirect
)
