package operationtest

import (
	"context"
	"maps"

	"mobilegateway/shared/operator"
)

// Routes are the routes of a deployment, which a test sets between requests. Err, if set, makes them unreadable.
type Routes struct {
	operator.Routes
	Err error
}

// UseRoutes makes the fixture a deployment with routes, whose platforms are all served by one driver.
func (f *Fixture) UseRoutes(driver operator.Driver, routes *Routes) {
	f.Pipeline.Operators = operator.NewDriverDirectory(driversOf(driver), routeReader{routes})
}

// Set replaces the routes of an operator.
func (r *Routes) Set(operatorName string, routes ...operator.Route) {
	byOperator := map[string][]operator.Route{}
	maps.Copy(byOperator, r.ByOperator)
	byOperator[operatorName] = routes
	r.ByOperator = byOperator
}

type routeReader struct{ routes *Routes }

// Routes implements operator.RouteReader.
func (r routeReader) Routes(context.Context) (operator.Routes, error) {
	return r.routes.Routes, r.routes.Err
}
