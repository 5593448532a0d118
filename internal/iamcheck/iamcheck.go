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

	"mobilegateway/internal/local/awscalls"
	"mobilegateway/internal/template"
)

// Compare tells each difference between the template's permissions and a record, in order; none means that they are
// exactly the same. The record must be one of everything that the functions can do.
func Compare(t *template.Template, record []awscalls.Call) []string {
	granted, faults := grantedPermissions(t)
	faults = append(faults, checkOwnRoles(t)...)
	faults = append(faults, MissingPermissions(t, record)...)
	serviceOnly := requiredByServices(t)
	for permission := range maps.Keys(serviceOnly) {
		faults = append(faults, checkServicePermission(permission, serviceOnly[permission], granted)...)
	}
	called := map[awscalls.Call]bool{}
	for _, call := range record {
		called[call] = true
	}
	for permission, when := range granted {
		_, isServicePermission := serviceOnly[permission]
		switch {
		case isServicePermission && called[permission]:
			faults = append(faults, permissionText(permission)+" is excused as a service's, but our code calls it")
		case !isServicePermission && !called[permission]:
			faults = append(faults, permissionText(permission)+" is allowed, and no call needs it")
		case !isServicePermission && when != "":
			faults = append(faults, permissionText(permission)+" is called always, but allowed only under a condition")
		}
	}
	slices.Sort(faults)
	return faults
}

// MissingPermissions tells each call of a record that no permission of the template allows; none means that the record could have
// been made on AWS. Any record will do.
func MissingPermissions(t *template.Template, record []awscalls.Call) []string {
	granted, _ := grantedPermissions(t)
	var faults []string
	for _, call := range record {
		if _, allowed := granted[call]; !allowed {
			faults = append(faults, permissionText(call)+" is called, and no permission of template.yaml allows it")
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// grantedPermissions gives every permission of a function with the template's condition for it, and those that are there twice.
func grantedPermissions(t *template.Template) (granted map[awscalls.Call]string, faults []string) {
	granted = map[awscalls.Call]string{}
	for _, f := range t.Functions {
		role := t.Role(f.Role)
		if role == nil {
			continue // checkOwnRoles tells it
		}
		for _, statement := range role.Statements {
			for _, permission := range permissionsOf(f.LogicalID, statement) {
				if _, duplicate := granted[permission]; duplicate {
					faults = append(faults, permissionText(permission)+" is granted twice")
				}
				granted[permission] = statement.Condition
			}
		}
	}
	return granted, faults
}

// checkOwnRoles finds functions that have no role of their own, and roles that are no function's.
func checkOwnRoles(t *template.Template) []string {
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

// permissionsOf takes a statement apart.
func permissionsOf(function string, statement template.Statement) []awscalls.Call {
	var found []awscalls.Call
	for _, action := range statement.Actions {
		for _, resource := range statement.Resources {
			found = append(found, awscalls.Call{Function: function, Action: action, Resource: resource})
		}
	}
	return found
}

// checkServicePermission checks one permission that a service needs: it is there, and under the condition that the service has.
func checkServicePermission(permission awscalls.Call, rule servicePermission, granted map[awscalls.Call]string) []string {
	when, found := granted[permission]
	switch {
	case !found:
		return []string{permissionText(permission) + " is not allowed: " + rule.reason}
	case when != rule.condition:
		return []string{fmt.Sprintf("%s is allowed when %q, and needed when %q", permissionText(permission), when, rule.condition)}
	}
	return nil
}

// permissionText names a permission.
func permissionText(c awscalls.Call) string {
	return strings.Join([]string{c.Function, c.Action, c.Resource}, " ")
}
