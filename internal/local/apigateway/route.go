package apigateway

import (
	"strings"

	"mobilegateway/internal/template"
)

// routeMatch is a route with the values of its parameters, still percent-encoded.
type routeMatch struct {
	template.Route
	parameters map[string]string
}

// matchRoute finds the route of a request. Like API Gateway it prefers a literal segment to a parameter and ignores one
// trailing slash (decision "token-endpoint").
func matchRoute(routes []template.Route, method, path string) (best routeMatch, found bool) {
	segments, most := strings.Split(strings.TrimSuffix(path, "/"), "/"), -1
	for _, r := range routes {
		parameters, literals, matches := matchSegments(strings.Split(r.Resource, "/"), segments)
		if r.Method == method && matches && literals > most {
			best, found, most = routeMatch{Route: r, parameters: parameters}, true, literals
		}
	}
	return best, found
}

// matchSegments reports whether a path matches a resource. It returns the parameters' values and the number of literal
// segments.
func matchSegments(resource, path []string) (parameters map[string]string, literals int, matches bool) {
	if len(path) != len(resource) {
		return nil, 0, false
	}
	parameters = map[string]string{}
	for i, want := range resource {
		name, isParameter := strings.CutPrefix(want, "{")
		switch {
		case isParameter && path[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = path[i]
		case isParameter || want != path[i]:
			return nil, 0, false
		default:
			literals++
		}
	}
	return parameters, literals, true
}
