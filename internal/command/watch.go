package command

import (
	"regexp"

	"github.com/gomem/gomem/train"
)

// watchFlags say what becomes of the numbers of a run.
type watchFlags struct {
	Patience count    `group:"training" placeholder:"N"`
	KeepBest bool     `group:"output"`
	Metrics  []string `group:"output" sep:"none" placeholder:"DIR"`
}

// isAddress recognises where numbers are served, rather than written.
var isAddress = regexp.MustCompile(`^[^/\\]*:[0-9]+$`)

// counters is the address to serve counters at, and numbers the directory to write to.
func (f watchFlags) counters() string { return f.metrics(true) }
func (f watchFlags) numbers() string  { return f.metrics(false) }

func (f watchFlags) metrics(address bool) string {
	for _, where := range f.Metrics {
		if isAddress.MatchString(where) == address {
			return where
		}
	}
	return ""
}

// given are the flags that are there, by name.
func (f watchFlags) given() []option {
	return []option{{"patience", f.Patience > 0}, {"keep-best", f.KeepBest},
		{"metrics", len(f.Metrics) > 0}}
}

// check refuses flags that contradict each other, of a run that is saved or not.
func (f watchFlags) check(saved bool) error {
	addresses := 0
	for _, where := range f.Metrics {
		switch {
		case where == "":
			return usagef("--metrics: it is empty: give a directory")
		case isAddress.MatchString(where):
			addresses++
		}
	}
	switch {
	case addresses > 1 || len(f.Metrics)-addresses > 1:
		return usagef("--metrics %s and %s: give one directory, and one address at most",
			f.Metrics[0], f.Metrics[1])
	case f.KeepBest && !saved:
		return usagef("--keep-best needs --save DIR")
	}
	return nil
}

// watch gives a run the flags.
func (f watchFlags) watch(o *train.Options) {
	o.Patience, o.KeepBest, o.Metrics = train.Patience{Evaluations: int(f.Patience)}, f.KeepBest,
		f.numbers()
}
