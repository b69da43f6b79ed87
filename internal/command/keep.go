package command

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/internal/workers"
)

// keepFlags say how workers keep in step.
type keepFlags struct {
	Sync      string  `group:"job" placeholder:"SCHEME"`
	Staleness *whole  `group:"job" placeholder:"STEPS"`
	Bandwidth bitRate `group:"job" placeholder:"RATE"`
	Order     string  `group:"job" placeholder:"ORDER"`
	Rule      string  `group:"job" placeholder:"RULE"`
	Filter    string  `group:"job" placeholder:"FILTER"`
	Multicast count   `group:"job" placeholder:"N"`
	Receivers string  `group:"job" placeholder:"WHICH"`
	Select    count   `group:"job" placeholder:"N"`
	Average   count   `group:"job" placeholder:"STEPS"`
	Delay     count   `group:"job" placeholder:"N"`
	// Aggregators may be none.
	Aggregators *whole   `group:"job" placeholder:"N"`
	Replicas    count    `group:"job" placeholder:"N"`
	Divergence  string   `group:"job" placeholder:"N|norm:X"`
	Topology    location `group:"job" placeholder:"FILE"`
	Rotate      count    `name:"rotate-every" group:"job" placeholder:"STEPS"`

	updateLogFlags
}

// given are the flags that are there, by name.
func (f keepFlags) given() []option {
	return []option{{"sync", f.Sync != ""}, {"staleness", f.Staleness != nil},
		{"bandwidth", f.Bandwidth > 0}, {"order", f.Order != ""},
		{"rule", f.Rule != ""}, {"filter", f.Filter != ""}, {"average", f.Average > 0},
		{"multicast", f.Multicast > 0}, {"select", f.Select > 0}, {"receivers", f.Receivers != ""},
		{"delay", f.Delay > 0}, {"aggregators", f.Aggregators != nil},
		{"replicas", f.Replicas > 0}, {"divergence", f.Divergence != ""},
		{"rotate-every", f.Rotate > 0}, {"topology", f.Topology != ""}, {"svlog", f.SVLog != ""},
		{"svlog-keep", f.SVLogKeep > 0}}
}

// scheme is how the workers of a job keep in step who train a model.
func (f keepFlags) scheme(model string, job meetFlags) (workers.Scheme, error) {
	if s, ok, err := f.scheduled(model); ok {
		return s, err
	}
	o := workers.SchemeOptions{Bandwidth: float64(f.Bandwidth), Order: f.Order, Rule: f.Rule,
		Filter: f.Filter, Every: int(f.Average), Multicast: int(f.Multicast),
		Receivers: f.Receivers, Select: int(f.Select), Delay: int(f.Delay)}
	if f.Aggregators != nil {
		n := int(*f.Aggregators)
		o.Aggregators = &n
	}
	o.Replicas, o.Divergence = int(f.Replicas), f.Divergence
	if f.Staleness != nil {
		n := int(*f.Staleness)
		o.Staleness = &n
	}
	var err error
	if o.Tiers, err = f.tiers(max(job.Local, job.Workers, job.Max)); err != nil {
		return workers.Scheme{}, err
	}
	s, err := workers.ParseScheme(cmp.Or(f.Sync, "ring"), o)
	if err != nil {
		return s, usagef("%w", err)
	}
	if s.Plan != nil && s.Plan.Gradients() && !slices.Contains(shallow, model) {
		return s, usagef("--rule %s is for gradients, which mlr and mf send: --model %s sends "+
			"what its own optimizer has made of them", f.Rule, model)
	}
	if f.Rotate > 0 && !slices.Contains(shallow, model) {
		return s, usagef("--rotate-every does nothing for --model %s: its workers draw from all "+
			"data", model)
	}
	if f.Replicas > 0 && slices.Contains(shallow, model) {
		return s, usagef("--replicas does nothing for --model %s: when a worker is lost, the "+
			"epoch under way is done again", model)
	}
	return s, f.updateLogFlags.check(s, job.Min > 0)
}

// schedules are the words of --sync for models that are scheduled: who works at the same time has
// nothing in common with the others, and so nothing is kept in step.
var schedules = []struct {
	name   string
	models []string
	about  string
}{
	{"stratified", []string{"mf"}, "blocks that have no row and no column in common"},
	{"rotate", []string{"lda"}, "documents that stay, and slices of the vocabulary that rotate"},
	{"blocks", sparse, "what is correlated is updated in turn, by one of them"},
	{"independent", sparse, "of what is correlated one is updated, and the others are not"},
	{"histograms", []string{"gbt"}, "each counts a part of the data"},
	{"unchecked", sparse, "all is updated at the same time, correlated or not"},
}

// scheduled is the scheme of workers who have a schedule, if that is what --sync says.
func (f keepFlags) scheduled(model string) (s workers.Scheme, ok bool, err error) {
	for _, x := range schedules {
		if x.name != f.Sync {
			continue
		}
		idle := f
		idle.Sync = ""
		name := firstGiven(idle.given())
		switch {
		case !slices.Contains(x.models, model):
			err = usagef("--sync %s is for --model %s", x.name, strings.Join(x.models, " and "))
		case name != "":
			err = usagef("--%s does nothing with --sync %s: leave one of them out", name, x.name)
		}
		return workers.Schedule(x.name, x.about), true, err
	}
	return s, false, nil
}

// serving is the scheme of workers who train a model without layers, which is saved or gone on
// from or not: they have parameter servers, or a schedule.
func (f keepFlags) serving(model string, job meetFlags, saved bool) (workers.Scheme, error) {
	s, err := f.scheme(model, job)
	switch {
	case err != nil || s.Scheduled():
		return s, err
	case isSparse(model):
		return s, usagef("--sync %s keeps workers in step, and those of --model %s have a "+
			"schedule: want blocks, independent or unchecked", f.Sync, model)
	case model == "gbt":
		return s, usagef("--sync %s is not for --model gbt, whose workers come to the same trees: "+
			"leave it out", f.Sync)
	case s.Plan == nil:
		return s, usagef("--sync %s exchanges gradients of layers, which --model %s has none of: "+
			"want bosen, pf or the like", f.Sync, model)
	}
	if saved {
		if err := s.Plan.Saved(); err != nil {
			return s, usagef("--sync %s can neither save nor resume --model %s: %w", f.Sync, model,
				err)
		}
	}
	if kind, ok := map[string]distrib.Kind{"lr": distrib.SparseRows{},
		"lda": distrib.IntRows{}}[model]; ok {
		if err := s.Plan.Admits(kind); err != nil {
			return s, usagef("--model %s cannot have this --sync, --rule or --filter: %w", model,
				err)
		}
	}
	if model == "lda" && s.Plan.Up != nil && (saved || job.Min > 0) {
		return s, usagef("--filter %s would round the topics of words, which --save, --resume and "+
			"--min of --model lda share: leave it out, or want --sync rotate", f.Filter)
	}
	return s, nil
}

// tiers are where so many workers are, by a file that names all of them; nil if there is none.
func (f keepFlags) tiers(workers count) (t distrib.Tiers, err error) {
	if f.Topology == "" {
		return nil, nil
	}
	file, _, err := data.OpenFile(string(f.Topology))
	if err == nil {
		defer file.Close()
		var in io.Reader
		if in, err = data.Unmarked(file); err == nil {
			t, err = distrib.ParseTiers(in)
		}
	}
	if err != nil {
		return nil, usagef("--topology %s: %w", f.Topology, err)
	}
	for i := range workers {
		if t[distrib.NodeID(i)] == "" {
			return nil, usagef("--topology %s: worker %d is not in it: each needs a line such as "+
				"'%d rack1'", f.Topology, i, i)
		}
	}
	return t, nil
}

// updateLogFlags say where the updates of a run are logged.
type updateLogFlags struct {
	SVLog     location `name:"svlog" group:"job" placeholder:"DIR"`
	SVLogKeep count    `name:"svlog-keep" group:"job" placeholder:"N"`
}

// check refuses to log updates where that would be of no use.
func (f updateLogFlags) check(s workers.Scheme, elastic bool) error {
	switch {
	case f.SVLog == "" && f.SVLogKeep > 0:
		return usagef("--svlog-keep needs --svlog DIR")
	case f.SVLog == "":
		return nil
	case elastic:
		return usagef("--svlog is for workers that do not come and go: leave --min out")
	case !s.Logs():
		return usagef("--svlog does nothing for --sync %s, whose workers fold no updates into "+
			"variables of their own: give orpheus, lossy, svb, exponential or halton", s.Name)
	}
	return nil
}

// before refuses a directory that has the log of another run, before workers are started here,
// who may begin again from where they were. A run that is resumed may log to the same directory.
func (f updateLogFlags) before(e *env, job meetFlags, resumed bool) error {
	if f.SVLog == "" || resumed || job.Local < 2 || e.extras.Cluster == nil {
		return nil
	}
	w, err := e.extras.Cluster.World(job.flags())
	if err != nil || w.Launched { // if it is wrong, that is said later
		return nil
	}
	return f.another(len(workers.Logged(string(f.SVLog))) > 0)
}

// joining is the same for a worker that somebody else has started.
func (f updateLogFlags) joining(w World, job meetFlags, resumed bool) error {
	if f.SVLog == "" || resumed || w.Launched || job.Local > 1 {
		return nil
	}
	return f.another(slices.Contains(workers.Logged(string(f.SVLog)), w.Rank))
}

// another refuses a directory that updates of another run were logged to.
func (f updateLogFlags) another(logged bool) error {
	if !logged {
		return nil
	}
	return fmt.Errorf("--svlog %s: the directory has the log of another run: resume that one, or "+
		"log to another directory", f.SVLog)
}
