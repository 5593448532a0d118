// Package iamcheck compares the permissions of each role in template.yaml with a record of its function's AWS calls, in
// both directions.
//
// A call without its permission fails once deployed. A permission without a call only helps an attacker. One table
// lists the permissions that AWS itself needs a function's role for, each with its reason. A permission for items is
// one for each kind of item that its condition names, and its calls are compared by kind. The invariant: every
// permission has a row of that table or a recorded call, and never both.
package iamcheck

import (
	"fmt"
	"slices"
	"strings"

	"mobilegateway/world/awscalls"
	"mobilegateway/world/template/roles"
)

// Compare lists the differences between the template's permissions and a record, in order. The record must have every
// call that the functions can make.
func Compare(t *roles.Template, record []awscalls.Call) []string {
	granted, faults := grantedPermissions(t)
	faults = append(faults, checkOwnRoles(t)...)
	faults = append(faults, MissingPermissions(t, record)...)
	serviceOnly := requiredByServices(t)
	for permission, rule := range serviceOnly {
		switch when, found := granted[permission]; {
		case !found:
			faults = append(faults, permissionText(permission)+" is not allowed: "+rule.reason)
		case when != rule.grant():
			faults = append(faults, fmt.Sprintf("%s is allowed under the condition %q, but needed under %q",
				permissionText(permission), when, rule.grant()))
		}
	}
	for permission, when := range granted {
		_, isServicePermission := serviceOnly[permission]
		isCalled := slices.Contains(record, permission)
		switch {
		case isServicePermission && isCalled:
			faults = append(faults, permissionText(permission)+
				" is in the table of services, but a function calls it: delete the row")
		case !isServicePermission && !isCalled:
			faults = append(faults, permissionText(permission)+
				" is allowed, but no call needs it: remove it from template.yaml")
		case !isServicePermission && when != "":
			faults = append(faults, permissionText(permission)+" is always called, but only allowed under a condition")
		}
	}
	slices.Sort(faults)
	return faults
}

// MissingPermissions lists the calls of a record that the template does not allow. On AWS they would fail. The record
// may be incomplete.
func MissingPermissions(t *roles.Template, record []awscalls.Call) []string {
	granted, _ := grantedPermissions(t)
	var faults []string
	for _, call := range record {
		if _, allowed := granted[call]; !allowed {
			faults = append(faults, permissionText(call)+" is called, but not allowed: add it to template.yaml")
		}
	}
	slices.Sort(faults)
	return slices.Compact(faults)
}

// grantedPermissions returns every permission of a function with the template's condition for it, and its duplicates.
// The condition is that of the template, and then those of IAM except the kinds of items.
func grantedPermissions(t *roles.Template) (granted map[awscalls.Call]string, faults []string) {
	granted = map[awscalls.Call]string{}
	for _, f := range t.Functions {
		role := t.Role(f.Role)
		if role == nil {
			continue // checkOwnRoles reports it
		}
		for _, statement := range role.Statements {
			allowed := permissionsOf(f.LogicalID, statement.Actions, statement.Resources, statement.Kinds)
			for _, permission := range allowed {
				if _, duplicate := granted[permission]; duplicate {
					faults = append(faults, permissionText(permission)+" is granted twice")
				}
				granted[permission] = conditionText(statement.Condition, statement.Requires)
			}
		}
	}
	return granted, faults
}

// checkOwnRoles finds functions without their own role, and roles without a function.
func checkOwnRoles(t *roles.Template) []string {
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
			faults = append(faults, role.LogicalID+" is not the role of a function")
		}
	}
	return faults
}

// conditionText joins the template's condition and those of IAM.
func conditionText(condition string, requires []string) string {
	return strings.TrimSpace(condition + " " + strings.Join(requires, " "))
}

// permissionsOf returns the permissions of a statement, one for each action, resource and kind of item.
func permissionsOf(function string, actions, resources, kinds []string) []awscalls.Call {
	if len(kinds) == 0 {
		kinds = []string{""}
	}
	var found []awscalls.Call
	for _, action := range actions {
		for _, resource := range resources {
			for _, kind := range kinds {
				call := awscalls.Call{Function: function, Action: action, Resource: resource, Kind: kind}
				found = append(found, call)
			}
		}
	}
	return found
}

func permissionText(c awscalls.Call) string {
	return strings.TrimSpace(strings.Join([]string{c.Function, c.Action, c.Resource, c.Kind}, " "))
}
