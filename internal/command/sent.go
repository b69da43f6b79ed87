package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/internal/workers"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// amongFlags say among how many workers a step is planned, and how they keep in step.
type amongFlags struct {
	Workers count  `group:"job" placeholder:"N"`
	Sync    string `group:"job" placeholder:"SCHEME"`
}

// given are the flags that are there, by name.
func (f amongFlags) given() []option {
	return []option{{"workers", f.Workers > 0}, {"sync", f.Sync != ""}}
}

// sent is how workers exchange what a step makes of a variable: the bytes of an update whole, as
// it goes to one other worker, and by its factors; 0 if it has none.
type sent struct {
	Variable  string `json:"variable"`
	Type      string `json:"type"`
	Dense     int64  `json:"dense_bytes"`
	Factors   int64  `json:"factor_bytes"`
	ByFactors bool   `json:"by_factors"`
}

// among has the flags' model be that of one of several workers; nil is the scheme of none.
func (f *modelFlags) among(e *env, o amongFlags, mesh string) (*workers.Scheme, error) {
	switch {
	case firstGiven(o.given()) == "":
		return nil, nil
	case e.extras.Cluster == nil:
		return nil, elsewhere(e, o.given())
	case o.Workers < 2:
		return nil, usagef("--sync needs --workers N: among how many, 2 or more")
	case mesh != "":
		return nil, usagef("--workers does nothing with --mesh, which says how many there are: " +
			"leave one of them out")
	}
	s, err := workers.ParseScheme(cmp.Or(o.Sync, "ring"), workers.SchemeOptions{})
	if err != nil {
		return nil, usagef("%w", err)
	}
	if f.pushed = s.Given(); s.Plan == nil {
		f.exchanging, f.factoring = int(o.Workers), s.Factoring(int(o.Workers))
	}
	return &s, nil
}

// sentOf is how each variable goes that training changes. What nothing is said of goes whole.
func sentOf(m *models.Model) (list []sent) {
	for _, v := range m.Parameters() {
		s := sent{Variable: v.Node.Name, Type: v.Type().String(), Dense: v.Type().Bytes()}
		for _, o := range m.Objectives {
			for _, w := range o.Ways {
				if w.Parameter == v {
					s.Dense, s.Factors, s.ByFactors = w.Dense, w.Factors, w.ByFactors
				}
			}
		}
		list = append(list, s)
	}
	return list
}

// reserve takes what exchanging needs out of what a plan may have of the host's memory.
func (b *built) reserve(o *gomem.Options, s *workers.Scheme, n int) (err error) {
	if s == nil {
		return nil
	}
	if o.NetworkBytes, err = workers.Bytes(*s, n, b.model.Graph); err != nil {
		return err
	}
	return roomFor(*o)
}

// roomFor refuses a budget of host memory that exchanging takes alone.
func roomFor(o gomem.Options) error {
	if o.HostBytes > 0 && o.NetworkBytes >= o.HostBytes {
		return usagef("--host-memory %s: what the workers exchange takes %s of it, and the "+
			"plan needs some: give it more than %s", size(o.HostBytes), exact(o.NetworkBytes),
			exact(o.NetworkBytes+o.ProcessBytes))
	}
	return nil
}

// printSent writes how each variable goes, the largest first, and why.
func printSent(w io.Writer, list []sent, n int, scheme *workers.Scheme) {
	if list == nil {
		return
	}
	list = slices.SortedStableFunc(slices.Values(list), func(a, b sent) int {
		return cmp.Compare(b.Dense, a.Dense)
	})
	fmt.Fprintf(w, "\n%s\n", train.Folded(fmt.Sprintf("Among %d workers by --sync %s, a worker "+
		"sends of each update, to one other: whole, 4·J·K bytes of J by K; or the factors that it "+
		"is a product of, 4·R·(J+K) of R rows, less what others have in common with it. "+
		"%s", n, scheme.Name, chosenBy(scheme)), widthOf(w)))
	t := grid.New(2, 3)
	t.AppendHeader(table.Row{"", "", "whole", "factors", "goes as"})
	var sum int64
	for _, s := range list {
		factors, as, bytes := "none", "whole", s.Dense
		if s.Factors > 0 || s.ByFactors {
			factors = size(s.Factors)
		}
		if s.ByFactors {
			as, bytes = "factors", s.Factors
		}
		sum += bytes
		t.AppendRow(table.Row{s.Variable, s.Type, size(s.Dense), factors, as})
	}
	printTable(w, t)
	fmt.Fprintf(w, "\nTogether %s.\n", size(sum))
}

// chosenBy says how a scheme chooses.
func chosenBy(s *workers.Scheme) string {
	switch {
	case s.Name == "hybrid":
		return "Factors go to all others, and of what goes whole a worker sends 2(n-1)/n times " +
			"the bytes: what is less is taken."
	case s.Name == "factors":
		return "Factors are taken wherever there are some."
	case s.Given() == nil:
		return "This scheme sends all whole."
	}
	return "What is less is taken."
}
