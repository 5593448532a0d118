package template

// The shapes of a table in the file, whose names begin with capitals.
type (
	yamlAttribute struct {
		AttributeName string `yaml:"AttributeName"`
		AttributeType string `yaml:"AttributeType"`
	}
	yamlKey struct {
		AttributeName string `yaml:"AttributeName"`
		KeyType       string `yaml:"KeyType"`
	}
	yamlIndex struct {
		IndexName  string         `yaml:"IndexName"`
		KeySchema  []yamlKey      `yaml:"KeySchema"`
		Projection yamlProjection `yaml:"Projection"`
	}
	yamlProjection struct {
		ProjectionType string `yaml:"ProjectionType"`
	}
	yamlStreamView struct {
		StreamViewType string `yaml:"StreamViewType"`
	}
	yamlTimeToLive struct {
		AttributeName string `yaml:"AttributeName"`
	}
)

func keyElements(list []yamlKey) []KeyElement {
	var elements []KeyElement
	for _, key := range list {
		elements = append(elements, KeyElement(key))
	}
	return elements
}

func attributeDefinitions(list []yamlAttribute) []Attribute {
	var result []Attribute
	for _, attribute := range list {
		result = append(result, Attribute(attribute))
	}
	return result
}
