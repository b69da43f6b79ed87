package main

import (
	"errors"

	"github.com/gomem/gomem/distrib"
)

// engine is a scheme that is a plan. Policies keep state, so each node makes its own.
func engine(name string, plan func() distrib.Plan) scheme {
	return scheme{name, func(n distrib.Transport, v distrib.View) (distrib.Synchronizer,
		func() error, error) {
		e, err := distrib.New(distrib.Config{View: v, Transport: n, Plan: plan()})
		if err != nil {
			return nil, nil, err
		}
		return e.Worker(0), func() error {
			<-e.Done() // when nobody wants rows of this node any more
			return errors.Join(e.Close(), n.Close())
		}, nil
	}}
}

// ssp is the plain parameter server on package distrib, stale by s clocks: everything goes
// at the tick.
func ssp(name string, s int) scheme {
	return engine(name, func() distrib.Plan {
		return distrib.Plan{Consistency: distrib.SSP{S: s}}
	})
}
