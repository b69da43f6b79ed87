package workers

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/distrib/collective"
)

// Scheme says how workers keep in step.
type Scheme struct {
	Name string
	// Via is how gradients are exchanged within a step.
	Via   collective.Via
	about string
}

// SchemeOptions are a scheme's; the zero value is the plain choice.
type SchemeOptions struct {
	Staleness *int    // steps; nil: the scheme's own
	Bandwidth float64 // bits a second for updates that are sent early; 0: none are
	Filter    string  // "dvf:1e-3" and the like; "": everything is sent
}

// ParseScheme is the scheme of a name.
func ParseScheme(name string, o SchemeOptions) (Scheme, error) {
	s := Scheme{Name: name}
	var err error
	if s.Via, err = collective.ParseVia(name); err != nil || s.Via == collective.Gathered {
		return s, fmt.Errorf("there is no scheme %q", name)
	}
	s.about = "gradients by " + name
	return s, o.unused(name)
}

// unused refuses options that exchanges within a step have no use for.
func (o SchemeOptions) unused(name string) error {
	var given []string
	if o.Staleness != nil {
		given = append(given, "staleness")
	}
	if o.Bandwidth > 0 {
		given = append(given, "a bandwidth")
	}
	if o.Filter != "" {
		given = append(given, "a filter")
	}
	if given == nil {
		return nil
	}
	return fmt.Errorf("%s has no use for %s: it exchanges all gradients within the step", name,
		strings.Join(given, " and "))
}
