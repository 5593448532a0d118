package accounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mobilegateway/gatewayctl/output"
	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/strictjson"
)

// givenOperator is one platform in a file of credentials. Its accounts, by id, have only the fields that the file
// names, by their paths.
type givenOperator struct {
	current  string
	accounts map[string]map[string]string
}

// givenCredentials is a file of credentials, by the platform's name in lower case.
type givenCredentials map[string]givenOperator

// credentialsFile reads a file of credentials strictly, and collects its faults by the path in the file.
type credentialsFile struct {
	faults []error
}

func (f *credentialsFile) fault(path, format string, values ...any) {
	f.faults = append(f.faults,
		fmt.Errorf("%s: "+format, append([]any{output.ReplaceControlCharacters(path)}, values...)...))
}

// object returns a value as an object with sorted keys.
func (f *credentialsFile) object(path string, value any) (keys []string, object map[string]any) {
	object, isObject := value.(map[string]any)
	if !isObject {
		f.fault(path, "is not an object")
	}
	return slices.Sorted(maps.Keys(object)), object
}

func (f *credentialsFile) readOperator(schema accountSchema, path string, value any) givenOperator {
	given := givenOperator{accounts: map[string]map[string]string{}}
	keys, object := f.object(path, value)
	for _, key := range keys {
		switch at := path + "." + key; key {
		case "current":
			text, isText := object[key].(string)
			if !isText || text == "" {
				f.fault(at, "is not the id of an account")
			}
			given.current = text
		case "accounts":
			ids, accounts := f.object(at, object[key])
			for _, id := range ids {
				if operator.CheckToken(id) != nil {
					f.fault(at, "the id %q of an account is empty, or has spaces or characters outside ASCII", id)
				}
				given.accounts[id] = map[string]string{}
				f.readFields(schema, at+"."+id, "", accounts[id], given.accounts[id])
			}
		default:
			f.fault(at, "unknown field; a platform has current and accounts")
		}
	}
	return given
}

// readFields reads the fields at a path of an account, which is at the path in the file.
func (f *credentialsFile) readFields(
	schema accountSchema, account, path string, value any, into map[string]string,
) {
	at := strings.TrimSuffix(account+"."+path, ".")
	field, known := schema.find(path)
	if object, isObject := value.(map[string]any); isObject && schema.isGroup(path) {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if key == "" || strings.Contains(key, ".") {
				f.fault(at, "unknown field %q; the fields are %s", key, schema.paths())
				continue
			}
			f.readFields(schema, account, below, object[key], into)
		}
		return
	}
	text, isText := value.(string)
	switch {
	case schema.isGroup(path):
		f.fault(at, "is not an object")
	case !known:
		f.fault(at, "unknown field; the fields are %s", schema.paths())
	case !isText:
		f.fault(at, "is not a text")
	default:
		if err := field.Check(text); err != nil {
			f.fault(at, "%w", err)
		}
		into[path] = text
	}
}

// parseCredentialsFile reads the form {"<platform>":{"current":"<account>","accounts":{"<account>":{...}}}}. Every part
// is optional, and nothing else is accepted. An error names each fault, and quotes no value.
func parseCredentialsFile(text []byte) (givenCredentials, error) {
	if _, err := strictjson.Parse(text); err != nil {
		f := fault.FromError(err)
		return nil, fmt.Errorf("the credentials are not a JSON object with each name once: %s: %w",
			output.ReplaceControlCharacters(f.Part), f.Cause)
	}
	var root map[string]any
	if json.Unmarshal(text, &root) != nil {
		return nil, errors.New("the credentials are not a JSON object") // the parser's error may quote them
	}
	var file credentialsFile
	given := givenCredentials{}
	for _, key := range slices.Sorted(maps.Keys(root)) {
		name := strings.ToLower(key)
		schema, err := findAccountSchema(name)
		switch _, twice := given[name]; {
		case name == routesKey:
			file.fault(key, "use operator route set")
		case err != nil:
			file.faults = append(file.faults, err)
		case twice:
			file.fault(key, "the file names this platform twice")
		default:
			given[name] = file.readOperator(schema, key, root[key])
		}
	}
	return given, errors.Join(file.faults...)
}
