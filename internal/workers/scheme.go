package workers

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/collective"
	"github.com/gomem/gomem/nn"
)

// Scheme says how workers keep in step: by exchanging gradients within steps, or by a plan
// for what happens to variables between them.
type Scheme struct {
	Name  string
	Via   collective.Via // of gradients, if there is no plan
	Plan  *distrib.Plan
	about string

	options   SchemeOptions
	scheduled bool
}

// Schedule is the scheme of tasks that say themselves who sends what to whom, by
// [workload.Worker.Group]: there is nothing that is kept in step for them.
func Schedule(name, about string) Scheme {
	return Scheme{Name: name, about: about, scheduled: true}
}

// Scheduled reports whether it is of such tasks.
func (s Scheme) Scheduled() bool { return s.scheduled }

// anew is the scheme with a new state.
func (s Scheme) anew() (Scheme, error) {
	if s.scheduled {
		return s, nil
	}
	return ParseScheme(s.Name, s.options)
}

// SchemeOptions are what a scheme's name leaves open; the zero value is its own choice.
type SchemeOptions struct {
	Staleness *int          // steps; nil: the scheme's own
	Bandwidth float64       // bits a second for updates that are sent early; 0: none are
	Order     string        // in which those go, "relmag" and the like; "": the scheme's own
	Rule      string        // of those who serve, "momentum:0.9" and the like; "": they add
	Filter    string        // "dvf:1e-3" and the like; "": everything is sent
	Every     int           // steps between averages; 0: the scheme's own
	Tiers     distrib.Tiers // where workers are; nil: the same way from each to each
	Multicast int           // workers that a step's updates go to; 0: the scheme's own
	Receivers string        // which: "random", "turns" or "fixed"; "": random
	Select    int           // pairs of factors that are sent of a step's; 0: the scheme's own
	Delay     int           // others that may come before an update; 0: the scheme's own
	// Aggregators is how many workers add updates up for one that serves; nil: the scheme's own.
	Aggregators *int
	Replicas    int    // of the rows of each worker that serves; 0: none
	Divergence  string // updates that these may lack, or "norm:X"; "": the scheme's own
}

// settings are what must be the same of all workers' schemes: a rate and an order need not be.
func (s Scheme) settings() string {
	staleness := -1 // the scheme's own
	if s.options.Staleness != nil {
		staleness = *s.options.Staleness
	}
	where := crc32.ChecksumIEEE([]byte(s.options.Tiers.String())) // of a file that may be long
	o := s.options
	text := fmt.Sprintf("%s staleness %d filter %q rule %q every %d to %d %s topology %x", s.Name,
		staleness, o.Filter, o.Rule, o.Every, o.Multicast, o.Receivers, where)
	if s.fabric() {
		text += fmt.Sprintf(" delay %d aggregators %d replicas %d divergence %q", o.Delay,
			s.aggregators(), o.Replicas, o.Divergence)
	}
	return text
}

// within are the schemes that exchange gradients within steps, and what each is.
func within() (names, about []string) {
	return []string{"ring", "ps", "hybrid", "factors"}, []string{
		"gradients by all-reduce on a ring", "gradients by dense push and pull",
		"gradients or their factors, whichever are fewer bytes",
		"factors of gradients, where there are, to all"}
}

// forced reports whether gradients go by factors whatever that takes.
func (s Scheme) forced() bool { return s.Name == "factors" }

// fabric reports whether a scheduler says when updates go.
func (s Scheme) fabric() bool { return s.Name == "fabric" }

// aggregators is how many add updates up for one that serves.
func (s Scheme) aggregators() int {
	if s.options.Aggregators == nil {
		return 4
	}
	return *s.options.Aggregators
}

// Factoring says which gradients a number of workers exchange by factors; nil: none.
func (s Scheme) Factoring(workers int) nn.Factoring {
	switch {
	case s.Plan != nil:
		return nil
	case s.Name == "hybrid":
		return collective.Fewest{Workers: workers}
	case s.forced():
		return always{}
	}
	return nil
}

// Given says which variables' changes workers push as factors, between steps, in place of
// matrices; nil: none, as where changes are filtered, or added up by who owns some rows, to
// whom all the other factors would go for each few rows.
func (s Scheme) Given() nn.Factoring {
	if s.Plan == nil || s.options.Filter != "" {
		return nil
	}
	switch s.Plan.Topology.(type) {
	case *distrib.All, *distrib.RandomMulticast, *distrib.Exponential, *distrib.Halton:
		return fewer{}
	}
	return nil
}

// fewer takes factors where they are fewer bytes.
type fewer struct{}

// Factors compares.
func (fewer) Factors(gradient, factors int64) bool { return factors < gradient }

// always exchanges factors wherever there are some.
type always struct{}

// Factors does not ask.
func (always) Factors(_, _ int64) bool { return true }

// Schemes are the names of the schemes.
func Schemes() []string {
	names, _ := within()
	between, _ := distrib.Schemes()
	for _, name := range between {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ParseScheme is the scheme of a name, with state of its own: each worker calls it. The
// error lists the schemes, or says which option this one has no use for.
func ParseScheme(name string, o SchemeOptions) (Scheme, error) {
	names, about := within()
	if i := slices.Index(names, name); i >= 0 {
		via := collective.Ring
		if name != "factors" {
			var err error
			if via, err = collective.ParseVia(name); err != nil {
				return Scheme{}, err
			}
		}
		return Scheme{Name: name, Via: via, about: about[i]}, o.unused(name)
	}
	names, about = distrib.Schemes()
	i := slices.Index(names, name)
	if i < 0 {
		return Scheme{}, fmt.Errorf("there is no scheme %.60q: there are %s", name,
			strings.Join(Schemes(), ", "))
	}
	plan, err := distrib.ParseScheme(name, distrib.SchemeOptions{Staleness: o.Staleness,
		Bandwidth: o.Bandwidth, Order: o.Order, Rule: o.Rule, Filter: o.Filter,
		Every: distrib.Clock(o.Every), Multicast: o.Multicast, Select: o.Select,
		Receivers: o.Receivers,
		Tiers:     o.Tiers, Reduce: sum, Delay: distrib.Version(o.Delay)})
	if err == nil {
		err = o.scheduled(name)
	}
	return Scheme{Name: name, Plan: plan, about: about[i], options: o}, err
}

// sum adds up over a group.
func sum(ctx context.Context, g distrib.Group, x []float32) error {
	return collective.AllReduce(ctx, g, x, collective.Sum)
}

// unused refuses options that exchanges within a step have no use for.
func (o SchemeOptions) unused(name string) error {
	for _, option := range []struct {
		name  string
		given bool
	}{{"staleness", o.Staleness != nil}, {"bandwidth", o.Bandwidth > 0},
		{"multicast", o.Multicast > 0}, {"select", o.Select > 0}, {"receivers", o.Receivers != ""},
		{"delay", o.Delay > 0}, {"aggregators", o.Aggregators != nil},
		{"replicas", o.Replicas > 0}, {"divergence", o.Divergence != ""},
		{"order", o.Order != ""}, {"rule", o.Rule != ""}, {"filter", o.Filter != ""},
		{"every", o.Every > 0}, {"topology", o.Tiers != nil}} {
		if option.given {
			return fmt.Errorf("scheme %s has no use for option %s: it exchanges all gradients "+
				"within the step", name, option.name)
		}
	}
	return nil
}

// farthest is by how many steps workers may be apart where nothing else holds them back.
const farthest = 16

// Gradients reports whether workers send gradients, which owners take a step by.
func (s Scheme) Gradients() bool { return s.Plan != nil && s.Plan.Gradients() }

// Lag is by how many steps workers of a scheme with a plan may be apart.
func (s Scheme) Lag() int { return s.lag() }

// lag is by how many steps workers may be apart.
func (s Scheme) lag() int {
	if s.Plan == nil {
		return 0
	}
	if s.scheduled {
		return 0
	}
	if s.alone() {
		return int(s.Plan.Every[0].Every)
	}
	switch c := s.Plan.Consistency.(type) {
	case distrib.SSP:
		return c.S
	case distrib.Async:
		return farthest
	}
	return 0
}

// inStep reports whether workers wait for each other's updates of every step, so that these
// can be added up in one order.
func (s Scheme) inStep() bool {
	_, served := s.Plan.Topology.(*distrib.Shards)
	return served && s.lag() == 0 && s.Plan.Consistency != nil
}

// alone reports whether workers go on their own between averages.
func (s Scheme) alone() bool {
	_, local := s.Plan.Topology.(*distrib.Local)
	return local && len(s.Plan.Every) > 0
}

// apart reports whether each worker has a replica of its own, and nobody the one that counts.
func (s Scheme) apart() bool {
	if s.Plan == nil {
		return false
	}
	_, served := s.Plan.Topology.(*distrib.Shards)
	return !served
}

// share is the part of its own change that one of n workers pushes: changes of all add up,
// unless they are averaged.
func (s Scheme) share(n int) float32 {
	if s.alone() {
		return 1
	}
	return 1 / float32(n)
}
