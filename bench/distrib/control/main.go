//go:build unix

// Command control measures what docs/measurements/control.md quotes, and prints it: how long
// a cluster's control plane takes to start, and to notice and repair what goes wrong; and how
// much room it takes.
//
//	go run ./bench/distrib/control
//	go run ./bench/distrib/control -runs 5
//
// Nodes are processes of this program on loopback, which are killed and stopped by signals,
// with the times that jobs have: leases of five seconds, of one for who leads.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/gomem/gomem/internal/grid"
)

// row is a line of the table: what happens, and how long what it names takes.
type row struct {
	what, until string
	goal        string
	measure     func(*scene) (time.Duration, error)
}

func rows() []row {
	return []row{
		{"start of one server, in a temporary directory", "it answers", "< 1 s", startOne},
		{"start of a client of it", "it has an answer", "", startClient},
		{"start of three servers, with disks", "all answer", "", startThree},
		{"a small value written to one server, without fsync", "it is there", "", putFast},
		{"the same to one server with a disk", "it is there", "", putDisk},
		{"a node leaves", "the others have a view without it", "<= 1 s", leave},
		{"kill -9 of a node", "the others have a view without it", "<= 7 s", kill},
		{"kill -9 of who leads in a role", "another leads", "<= 2 s", killLeader},
		{"a node is stopped for 3 s", "nobody is lost; it writes again after", "", pause},
		{"kill -9 of etcd's leader, of three", "a value can be written", "<= 2 s", killServer},
		{"the same", "the others have a view without it", "<= 7 s", killServerView},
		{"kill -9 of the only server, with a disk, and its restart",
			"all nodes have a view with it", "", restart},
	}
}

func main() {
	if text := os.Getenv(roleVariable); text != "" {
		if err := runNode(text); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	runs := flag.Int("runs", 3, "how often each is measured; 0: only what a server takes")
	flag.Parse()
	err := reportRoom()
	if err == nil && *runs > 0 {
		err = report(*runs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(runs int) error {
	t := grid.New()
	t.AppendHeader(grid.Row("what happens", "until", "goal", "median", "longest"))
	for _, r := range rows() {
		var all []time.Duration
		for range runs {
			d, err := within(r.measure)
			if err != nil {
				return fmt.Errorf("%s: %w", r.what, err)
			}
			all = append(all, d)
		}
		slices.Sort(all)
		t.AppendRow(grid.Row(r.what, r.until, r.goal, shown(all[len(all)/2]),
			shown(all[len(all)-1])))
	}
	fmt.Println(t.RenderMarkdown())
	return nil
}

func shown(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

// within measures in a scene of its own.
func within(measure func(*scene) (time.Duration, error)) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "gomem-bench-control-")
	if err != nil {
		return 0, err
	}
	s := &scene{dir: dir}
	defer s.end()
	return measure(s)
}
