package command

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/gomem/gomem/distrib/fabric/replay"
	"github.com/gomem/gomem/internal/chart"
	"github.com/gomem/gomem/internal/regular"
)

// fabricCmd is gomem fabric.
type fabricCmd struct {
	Simulate simulateCmd `cmd:"" help:"Replay the networks of MLfabric's evaluation."`
}

func (fabricCmd) examples() string { return simulateCmd{}.examples() }

// simulateCmd is gomem fabric simulate.
type simulateCmd struct {
	Setting     []string `placeholder:"NAME"`
	Trace       location `placeholder:"FILE"`
	Workers     count    `default:"30" placeholder:"N"`
	Delay       whole    `default:"30" placeholder:"N"`
	Aggregators count    `default:"4" placeholder:"N"`
	Updates     count    `default:"3000" placeholder:"N"`
	Seed        whole    `default:"1" placeholder:"N"`
	Figure      location `placeholder:"FILE"`
	tableFlags
}

// Help is the long help.
func (simulateCmd) Help() string {
	return `Plays jobs of many workers on a network whose links change and whose computers
straggle, as in the evaluation of MLfabric (2020), and prints its tables with what
the paper says beside what comes out here: updates that are ordered under a delay
bound, added up on the way and replicated, beside a ring, a tree, and workers that push
to a server by themselves. Time is counted and not waited for. What is learnt is a
logistic regression, by real gradients of the versions that a worker would have had.
The nine settings take about two minutes on two cores.`
}

func (simulateCmd) examples() string {
	return `
  gomem-cluster fabric simulate --setting C2N1          stragglers, a quiet network
  gomem-cluster fabric simulate --trace links.csv       links as somebody measured them
  gomem-cluster fabric simulate --figure schedule.svg   who sends when over which link
`
}

// settings are all of the paper's.
func settings() (all []string) {
	for c := range 3 {
		for n := range 3 {
			all = append(all, fmt.Sprintf("C%dN%d", c+1, n+1))
		}
	}
	return all
}

// Run prints the tables.
func (c *simulateCmd) Run(ctx context.Context, e *env) error {
	if ext := filepath.Ext(string(c.Figure)); c.Figure != "" && !chart.Known(ext) {
		return usagef("--figure %s: a figure is a .png or a .svg", c.Figure)
	}
	if c.Updates < 2*c.Workers {
		return usagef("--updates %d: want two of each of %d workers at least", c.Updates, c.Workers)
	}
	names := c.Setting
	switch {
	case e.given["setting"] && len(names) == 0:
		return usagef("--setting: want C1 to C3 and N1 to N3, such as C2N1")
	case len(names) == 0:
		names = settings()
	}
	var jobs []setting
	for _, name := range names {
		s, err := c.setting(name)
		if err != nil {
			return err
		}
		jobs = append(jobs, s)
	}
	r := replays{ctx: ctx, updates: int(c.Updates), progress: e.patiently()}
	write := c.writer(e)
	for _, make := range r.tables() {
		t, err := make(jobs)
		if err != nil {
			return err
		}
		if err := write(t); err != nil {
			return err
		}
	}
	if c.Figure != "" {
		return r.draw(jobs[0], string(c.Figure))
	}
	return nil
}

// setting is one of the paper's, with what the flags say.
func (c *simulateCmd) setting(name string) (setting, error) {
	s, err := replay.Paper(name)
	if err != nil {
		return setting{}, usagef("--setting: %w", err)
	}
	s.Workers, s.Hosts = int(c.Workers), (int(c.Workers)+1)/2
	s.Delay, s.Aggregators, s.Distributors = int64(c.Delay), int(c.Aggregators), int(c.Aggregators)
	s.Seed = uint64(c.Seed)
	if c.Aggregators > count(s.Hosts) {
		return setting{}, usagef("--aggregators %d: %d workers are on %d machines, two on each",
			c.Aggregators, s.Workers, s.Hosts)
	}
	if c.Trace != "" {
		if s.Links.Fixed, err = readTrace(string(c.Trace), s.Hosts); err != nil {
			return setting{}, err
		}
	}
	return setting{name, s}, nil
}

// A trace has links that are no slower, in Gbit/s, and no more bytes.
const (
	leastGbps = 0.001
	maxTrace  = 64 << 20
)

// readTrace reads rates of links: lines of seconds, machine from 0, and Gbit/s of what it sends and
// receives from then on.
func readTrace(path string, hosts int) ([]replay.Rate, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(io.LimitReader(f, maxTrace))
	r.FieldsPerRecord, r.Comment = 4, '#'
	lines, err := r.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	all := make([]replay.Rate, len(lines))
	for i, line := range lines {
		var x [4]float64
		for k, text := range line {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil || !(v >= 0 && v < 1e9) {
				return nil, fmt.Errorf("%s, line %d: %.60q is no number from 0", path, i+1, text)
			}
			x[k] = v
		}
		if x[2] < leastGbps || x[3] < leastGbps {
			return nil, fmt.Errorf("%s, line %d: less than %v Gbit/s: nothing would arrive", path,
				i+1, leastGbps)
		}
		if x[1] != float64(int(x[1])) || int(x[1]) >= hosts {
			return nil, fmt.Errorf("%s, line %d: there is no machine %v of %d", path, i+1, x[1],
				hosts)
		}
		all[i] = replay.Rate{At: x[0], Host: int(x[1]), Up: x[2] * 1e9 / 8, Down: x[3] * 1e9 / 8}
		if i > 0 && all[i].At < all[i-1].At {
			return nil, fmt.Errorf("%s, line %d: %v s is before the line above", path, i+1, x[0])
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: %w", path, errors.New("no lines of seconds, machine, Gbit/s "+
			"sent and Gbit/s received"))
	}
	return all, nil
}
