// Command distrib measures what docs/measurements/distrib.md quotes, and prints it as
// tables: the goals of package distrib, on simulated networks, beside plain baselines.
//
//	go run ./bench/distrib -table G2
//	go run ./bench/distrib -table all
//	go run ./bench/distrib -table G2 -quick
//
// The network and the time are simulated (package memnet in a bubble of testing/synctest):
// what a table says does not depend on this machine or its load, and a minute takes as
// long as the arithmetic in it. Computing is emulated by sleeping. Bubbles belong to
// tests, so the program runs its tables as tests do; with -quick they are only tried out,
// as `go test ./bench/distrib` does.
//
// The tables ns and ns-mf are measured: processes in network namespaces whose links have a
// rate, over gRPC, in real time. They need root on Linux, and say so elsewhere.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// table is what the command prints.
type table struct {
	name, goal string
	print      func(t *testing.T, w io.Writer, quick bool) error
}

func tables() []table {
	return []table{
		{"G2", "stale-synchronous beside bulk-synchronous workers", staleness},
		{"G3", "managed communication: epochs and seconds to the same loss", communication},
		{"G3-draws", "managed communication: bytes by order, for several problems", draws},
		{"G4", "AdaRevision: epochs by step size", revision},
		{"G5", "Parameter Flow: bytes to the same objective", filtered},
		{"G6", "Parameter Flow: seconds to the same objective", throttled},
		{"ladder", "Parameter Flow: seconds at each staleness, dedicated and shared", ladder},
		{"G7", "tree-based streaming broadcast", broadcast},
		{"G8", "Parameter Flow: equal versions are equal bits", equalViews},
		{"G9", "factors: bytes by the formula, beside matrices", bytesOfFactors},
		{"G10", "few sufficient factors: what is lost, and kept", factors},
		{"G11", "a log of sufficient vectors beside checkpoints of matrices", incremental},
		{"orpheus", "Orpheus' table 3: what each of its parts is worth", ablation},
		{"broken", "Orpheus' figure 12: connections that break", breaking},
		{"failures", "Orpheus' table 4: machines that fail", failures},
		{"rows", "sparse rows and integers beside dense rows", sparseRows},
		{"strata", "factorisation by strata: seconds and bytes a pass, by strategy", strata},
		{"rotation", "rotation by workers, of factors and topics", rotation},
		{"epochs", "factorisation by strata: epochs to a loss beside serial ones", epochsToLoss},
		{"convergence", "factorisation: loss by epochs and by seconds", convergence},
		{"slr", "sparse regression: weights one by one, and prefetched by subscripts", sparseReads},
		{"ns", "Parameter Flow over gRPC, between network namespaces", namespaces},
		{"ns-mf", "managed communication over gRPC, between network namespaces", namespacedFactors},
		{"ways", "gradients by ring, parameter servers or factors, by bytes", ways},
		{"fabric", "MLfabric's schedules, run: asynchronous workers with and without", scheduled},
		{"strads", "the Lasso by schedules: priority, blocks, independent sets", schedules},
		{"G18", "Bösen's example: regression with 4 workers, staleness 2", covertype},
	}
}

func main() {
	if spec := os.Getenv(memberEnv); spec != "" {
		if err := member(spec, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "distrib:", err)
			os.Exit(1)
		}
		return
	}
	f := flag.NewFlagSet("distrib", flag.ExitOnError)
	name := f.String("table", "", "`name` of the table to print: all, or one of "+names())
	quick := f.Bool("quick", false, "only try the tables out")
	_ = f.Parse(os.Args[1:]) // which exits where it fails
	testing.Init()           // whose flags are none of this program's
	_ = flag.CommandLine.Parse(nil)
	var tests []testing.InternalTest
	out := os.Stdout
	for _, tb := range tables() {
		if tb.name == *name || *name == "all" {
			tests = append(tests, testing.InternalTest{Name: tb.name,
				F: func(t *testing.T) { tb.run(t, out, *quick) }})
		}
	}
	if len(tests) == 0 || f.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "distrib: -table must be all or one of", names())
		os.Exit(2)
	}
	os.Stdout = os.Stderr // where testing says how it went
	testing.Main(func(string, string) (bool, error) { return true, nil }, tests, nil, nil)
}

func names() string {
	var all []string
	for _, tb := range tables() {
		all = append(all, tb.name)
	}
	return strings.Join(all, " ")
}

func (tb table) run(t *testing.T, w io.Writer, quick bool) {
	fmt.Fprintf(w, "## %s: %s\n\n`go run ./bench/distrib -table %s`\n\n", tb.name, tb.goal, tb.name)
	if err := tb.print(t, w, quick); err != nil {
		t.Fatalf("%s: %v", tb.name, err)
	}
	fmt.Fprintln(w)
}
