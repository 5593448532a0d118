// Package iamcheck holds template.yaml's permissions to what the functions do: it compares each role with a record of
// the AWS calls that its function made, in both directions.
//
// A call without its permission would fail once deployed; a permission without a call is one that a thief would have for
// nothing. What AWS itself needs a function's role for, and no call of ours shows, is one table with a reason for each
// row. The invariant: a permission is excused by a row or shown by a call, never both and never neither.
package iamcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mobilegateway/internal/local/calls"
	"mobilegateway/internal/template"
)

// Compare tells each difference between the template's permissions and a record, in order; none means that they are
// exactly the same. The record must be one of everything that the functions can do.
func Compare(t *template.Template, record []calls.Call) []string {
	granted, faults := grants(t)
	faults = append(faults, ownRoles(t)...)
	faults = append(faults, Allowed(t, record)...)
	due := services(t)
	for permission := range maps.Keys(due) {
		faults = append(faults, excuse(permission, due[permission], granted)...)
	}
	made := map[calls.Call]bool{}
	for _, call := range record {
		made[call] = true
	}
	for permission, when := range granted {
		_, excused := due[permission]
		switch {
		case excused && made[permission]:
			faults = append(faults, text(permission)+" is excused as a service's, but our code calls it")
		case !excused && !made[permission]:
			faults = append(faults, text(permission)+" is allowed, and no call needs it")
		case !excused && when != "":
			faults = append(faults, text(permission)+" is called always, but allowed only under a condition")
		}
	}
	slices.Sort(faults)
	return faults
}

// Allowed tells each call of a record that no permission of the template allows; none means that the record could have
// been made on AWS. Any record will do.
func Allowed(t *template.Template, record []calls.Call) []string {
	granted, _ := grants(t)
	var faults []string
	for _, call := range record {
		if _, allowed := granted[call]; !allowed {
			faults = append(faults, text(call)+" is called, and no permission of template.yaml allows it")
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// grants gives every permission of a function with the template's condition for it, and those that are there twice.
func grants(t *template.Template) (granted map[calls.Call]string, faults []string) {
	granted = map[calls.Call]string{}
	for _, f := range t.Functions {
		role := t.Role(f.Role)
		if role == nil {
			continue // ownRoles tells it
		}
		for _, statement := range role.Statements {
			for _, permission := range permissions(f.LogicalID, statement) {
				if _, again := granted[permission]; again {
					faults = append(faults, text(permission)+" is granted twice")
				}
				granted[permission] = statement.When
			}
		}
	}
	return granted, faults
}

// ownRoles finds functions that have no role of their own, and roles that are no function's.
func ownRoles(t *template.Template) []string {
	var faults []string
	users := map[string]string{}
	for _, f := range t.Functions {
		switch {
		case t.Role(f.Role) == nil:
			faults = append(faults, f.LogicalID+" has no role in template.yaml")
		case users[f.Role] != "":
			faults = append(faults, fmt.Sprintf("%s shares %s with %s", f.LogicalID, f.Role, users[f.Role]))
		}
		users[f.Role] = f.LogicalID
	}
	for _, role := range t.Roles {
		if users[role.LogicalID] == "" {
			faults = append(faults, role.LogicalID+" is no function's role")
		}
	}
	return faults
}

// permissions takes a statement apart.
func permissions(function string, statement template.Statement) []calls.Call {
	var found []calls.Call
	for _, action := range statement.Actions {
		for _, resource := range statement.Resources {
			found = append(found, calls.Call{Function: function, Action: action, Resource: resource})
		}
	}
	return found
}

// excuse checks one permission that a service needs: it is there, and under the condition that the service has.
func excuse(permission calls.Call, row need, granted map[calls.Call]string) []string {
	when, found := granted[permission]
	switch {
	case !found:
		return []string{text(permission) + " is not allowed: " + row.why}
	case when != row.when:
		return []string{fmt.Sprintf("%s is allowed when %q, and needed when %q", text(permission), when, row.when)}
	}
	return nil
}

// text names a permission.
func text(c calls.Call) string { return strings.Join([]string{c.Function, c.Action, c.Resource}, " ") }
