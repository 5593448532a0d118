package apigateway

import (
	"strings"

	"mobilegateway/internal/template"
)

// route is a route of the template, split into segments.
type route struct {
	template.Route
	segments []string
}

// routeMatch is a route with the values of its parameters, still percent-encoded.
type routeMatch struct {
	template.Route
	parameters map[string]string
}

func newRoutes(list []template.Route) []route {
	var routes []route
	for _, r := range list {
		routes = append(routes, route{Route: r, segments: strings.Split(r.Resource, "/")})
	}
	return routes
}

// matchRoute finds the route of a request. Like API Gateway it prefers a literal segment to a parameter and ignores one
// trailing slash (decision "token-endpoint").
func matchRoute(routes []route, method, path string) (routeMatch, bool) {
	segments := strings.Split(strings.TrimSuffix(path, "/"), "/")
	best, found, literals := routeMatch{}, false, -1
	for _, r := range routes {
		if r.Method != method {
			continue
		}
		parameters, n, matches := r.match(segments)
		if matches && n > literals {
			best, found, literals = routeMatch{Route: r.Route, parameters: parameters}, true, n
		}
	}
	return best, found
}

// match reports whether a path matches a route, and returns the parameters' values and the number of literal segments.
func (r route) match(segments []string) (parameters map[string]string, literals int, matches bool) {
	if len(segments) != len(r.segments) {
		return nil, 0, false
	}
	parameters = map[string]string{}
	for i, want := range r.segments {
		name, isParameter := strings.CutPrefix(want, "{")
		switch {
		case isParameter && segments[i] != "":
			parameters[strings.TrimSuffix(name, "}")] = segments[i]
		case isParameter || want != segments[i]:
			return nil, 0, false
		default:
			literals++
		}
	}
	return parameters, literals, true
}
