package nn

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/graph"
)

// isWithin reports whether a parameter is in a scope, or is the one of that very name.
func isWithin(name, scope string) bool {
	return name == scope || strings.HasPrefix(name, strings.TrimSuffix(scope, "/")+"/")
}

// known reports the first scope of an option that no parameter is in.
func (m *Model) known(option string, scopes []string) error {
	for _, scope := range scopes {
		found := slices.ContainsFunc(m.parameters, func(v graph.Value) bool {
			return isWithin(v.Node.Name, scope)
		})
		if !found {
			return errorf("%s: %q is no parameter, and no scope of one, that there is before "+
				"Minimize: there are %s", option, scope, m.beside(scope))
		}
	}
	return nil
}

// mostNamed is how many names an error lists.
const mostNamed = 8

// beside lists what there is beside a name: the parts of the deepest of the scopes above it
// that there is.
func (m *Model) beside(name string) string {
	for {
		cut := strings.LastIndexByte(strings.TrimSuffix(name, "/"), '/')
		name = name[:cut+1]
		var parts []string
		for _, v := range m.parameters {
			if rest, ok := strings.CutPrefix(v.Node.Name, name); ok {
				part, _, _ := strings.Cut(rest, "/")
				if part = name + part; !slices.Contains(parts, part) {
					parts = append(parts, part)
				}
			}
		}
		switch {
		case len(parts) > mostNamed:
			return fmt.Sprintf("%s and %d more", strings.Join(parts[:mostNamed], ", "),
				len(parts)-mostNamed)
		case len(parts) > 0:
			return strings.Join(parts, ", ")
		case name == "":
			return "none"
		}
	}
}

// untrained reports the first parameter that an evaluation reads and no objective does: most
// likely a scope that is misspelt. A model without objectives is for nothing but evaluating.
func (m *Model) untrained() error {
	if len(m.Objectives) == 0 || !m.EvalLoss.Valid() {
		return nil
	}
	trained, evaluated := []graph.Value{}, []graph.Value{m.EvalLoss}
	for _, o := range m.Objectives {
		trained = append(trained, o.Loss)
	}
	for _, x := range m.EvalMetrics {
		evaluated = append(evaluated, x.Value)
	}
	in, out := m.above(trained), m.above(append(evaluated, m.EvalOutputs...))
	for _, v := range m.parameters {
		if n := v.Node; out[n.ID] && !in[n.ID] {
			return errorf("parameter %s is part of the evaluation and of no objective, so it "+
				"stays as it began: is its scope misspelt? There are %s; make it with Ctx.Average "+
				"if it is not to be trained (%s)", n.Name, m.others(n.Name, in), n.Pos)
		}
	}
	return nil
}

// others lists the parameters that are trained and have the last name of one, or, if none has,
// what there is beside it.
func (m *Model) others(name string, trained []bool) string {
	last := name[strings.LastIndexByte(name, '/')+1:]
	var names []string
	for _, v := range m.parameters {
		if trained[v.Node.ID] && strings.HasSuffix("/"+v.Node.Name, "/"+last) {
			names = append(names, v.Node.Name)
		}
	}
	switch {
	case len(names) == 0:
		return m.beside(name)
	case len(names) > mostNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "),
			len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// above are the nodes that values are computed of.
func (m *Model) above(values []graph.Value) []bool {
	var roots []graph.NodeID
	for _, v := range values {
		if v.Valid() && v.Graph() == m.Graph {
			roots = append(roots, v.Node.ID)
		}
	}
	return m.Graph.Ancestors(roots)
}
