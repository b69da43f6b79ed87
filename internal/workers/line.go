package workers

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
)

// line is the workers that exchange with each other: all, or those along an axis.
type line struct {
	exchanger  *collective.Exchanger
	rank, size int
}

// line joins all workers, and this one's along every axis of their mesh, to exchange.
func (p *part) line(mesh collective.Mesh, ids []distrib.NodeID) error {
	p.lines = map[string]*line{}
	if err := p.join("", p.group); err != nil {
		return err
	}
	p.exchanger = p.lines[""].exchanger
	if len(mesh.Names) == 0 {
		return nil
	}
	var err error
	if p.mesh, err = p.mux.Mesh(mesh, ids...); err != nil {
		return err
	}
	for _, name := range mesh.Names {
		if err := p.join(name, p.mesh.Axis(name)); err != nil {
			return err
		}
	}
	return nil
}

// unline ends the exchanges of all lines.
func (p *part) unline() (err error) {
	for _, axis := range p.axes() {
		err = errors.Join(err, p.lines[axis].exchanger.Close())
	}
	if p.mesh != nil {
		err = errors.Join(err, p.mesh.Close())
	}
	return err
}

// join makes the line of a group.
func (p *part) join(name string, g *collective.Group) error {
	e, err := collective.NewExchanger(g, collective.ExchangerOptions{})
	if err == nil {
		p.lines[name] = &line{e, g.Rank(), g.Size()}
	}
	return err
}

// axes are the names of the lines, in order.
func (p *part) axes() []string { return slices.Sorted(maps.Keys(p.lines)) }

// along is the line along an axis.
func (p *part) along(axis string) (*line, error) {
	if l := p.lines[axis]; l != nil {
		return l, nil
	}
	return nil, fmt.Errorf("the workers have no axis %q to exchange along: there are %q", axis,
		p.axes()[1:])
}
