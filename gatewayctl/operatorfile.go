package gatewayctl

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mobilegateway/shared/fault"
	"mobilegateway/shared/operator"
	"mobilegateway/shared/operator/drivers"
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

type accountSchema struct {
	row    operator.Capabilities
	fields []operator.AccountField
}

// findAccountSchema returns the fields that the platform's own driver declares.
func findAccountSchema(platform string) (accountSchema, error) {
	row, known := operator.FindCapabilities(platform)
	fields, served := drivers.NewDirectory(nil, nil, nil).AccountFields(platform)
	if !known || !served {
		return accountSchema{}, unknownPlatformError(platform)
	}
	return accountSchema{row, fields}, nil
}

// renewArguments are the arguments of the command that renews what the operator refuses of an account: its token, or
// the secrets of a platform that has no fixed token.
func renewArguments(account accountRef) []string {
	schema, _ := findAccountSchema(account.operator) // a platform that is not known has no field
	if _, hasToken := schema.find("access_token"); !hasToken {
		return confirmArguments("operator", "set", "FILE")
	}
	return confirmArguments("operator", "rotate-token", account.operator, "FILE", "--account", account.id)
}

// countrySuffix ends the path of a field with one text for each country.
const countrySuffix = ".*"

// find returns the field of a path, which has a country in the place of countrySuffix.
func (a accountSchema) find(path string) (operator.AccountField, bool) {
	for _, field := range a.fields {
		if field.Path == path {
			return field, true
		}
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		country, inGroup := strings.CutPrefix(path, group+".")
		if each && inGroup && slices.Contains(a.row.Countries(), country) {
			return field, true
		}
	}
	return operator.AccountField{}, false
}

// isGroup reports whether a path has fields below it.
func (a accountSchema) isGroup(path string) bool {
	return path == "" || slices.ContainsFunc(a.fields, func(field operator.AccountField) bool {
		return strings.HasPrefix(field.Path, path+".")
	})
}

// paths lists the fields for an error.
func (a accountSchema) paths() string {
	countries := "." + strings.Join(a.row.Countries(), "|")
	return joinComma(mapAll(a.fields, func(field operator.AccountField) string {
		return strings.Replace(field.Path, countrySuffix, countries, 1)
	}))
}

// unusable lists the fields without which an operation cannot be made, each with its fault. A field for each country
// needs one value at least, and one for each of the countries.
func (a accountSchema) unusable(account map[string]string, operation string, countries ...string) []string {
	var faults []string
	for _, field := range a.fields {
		if !slices.Contains(field.NeededBy, operation) {
			continue
		}
		group, each := strings.CutSuffix(field.Path, countrySuffix)
		hasValue := func(code string) bool { return account[group+"."+code] != "" }
		lacking := slices.DeleteFunc(slices.Clone(countries), hasValue)
		switch {
		case !each && account[field.Path] == "" || each && !slices.ContainsFunc(a.row.Countries(), hasValue):
			faults = append(faults, group+" is missing")
		case each && len(lacking) > 0:
			faults = append(faults, group+" is missing for "+joinComma(lacking))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(account)) {
		field, known := a.find(path)
		if !known || account[path] == "" || !slices.Contains(field.NeededBy, operation) {
			continue
		}
		if err := field.Check(account[path]); err != nil {
			faults = append(faults, path+" "+err.Error())
		}
		isForOther := func(country string) bool { return field.IsForOther(account[path], country) }
		if other := slices.IndexFunc(countries, isForOther); other >= 0 {
			faults = append(faults, path+" is for another country than "+countries[other])
		}
	}
	return faults
}

// credentialsFile reads a file of credentials strictly, and collects its faults by the path in the file.
type credentialsFile struct {
	faults []error
}

func (f *credentialsFile) fault(path, format string, values ...any) {
	f.faults = append(f.faults, fmt.Errorf("%s: "+format, append([]any{replaceControlCharacters(path)}, values...)...))
}

// parseCredentialsFile reads the form {"<platform>":{"current":"<account>","accounts":{"<account>":{...}}}}. Every part
// is optional, and nothing else is accepted. An error names each fault, and quotes no value.
func parseCredentialsFile(text []byte) (givenCredentials, error) {
	if _, err := strictjson.Parse(text); err != nil {
		f := fault.FromError(err)
		return nil, fmt.Errorf("the credentials are not a JSON object with each name once: %s: %w",
			replaceControlCharacters(f.Part), f.Cause)
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
