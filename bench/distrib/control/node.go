//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/control"
)

// role is what a process is told of its part, in its environment.
type role struct {
	Rank    int
	Servers []control.Server
	Dir     string
	Nodes   int
}

const roleVariable = "GOMEM_BENCH_CONTROL"

// runNode is a node's process: it does what lines of its input say, and prints a line for
// everything that happens.
func runNode(text string) error {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	ctx := context.Background()
	from := time.Now()
	c, err := control.Start(ctx, control.Config{Job: "bench", Rank: r.Rank, Servers: r.Servers,
		Dir: r.Dir})
	if err != nil {
		return err
	}
	fmt.Printf("started %d\n", time.Since(from).Microseconds())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := obey(ctx, c, &r, lines.Text()); err != nil {
			return err
		}
	}
	return c.Close()
}

func obey(ctx context.Context, c *control.Control, r *role, line string) error {
	switch line {
	case "join":
		v, err := c.Join(ctx, distrib.Node{ID: distrib.NodeID(r.Rank),
			Addr: fmt.Sprint("127.0.0.1:", 1+r.Rank)}, r.Nodes, r.Nodes)
		if err != nil {
			return err
		}
		tell(v)
		go func() {
			for v := range c.Views() {
				tell(v)
			}
			fmt.Println("out")
		}()
	case "lead":
		go func() {
			term, err := c.Lead(ctx, "scheduler")
			if err != nil {
				fmt.Println("error", err)
				return
			}
			fmt.Println("leads")
			<-term.Done()
			fmt.Println("leads no more")
		}()
	case "leave":
		if err := c.Leave(ctx); err != nil {
			return err
		}
		fmt.Println("left")
	case "server":
		what := "follows"
		if c.ServerLeads() {
			what = "leads"
		}
		fmt.Println("server", what)
	case "put":
		return put(ctx, c, 1)
	case "puts":
		return put(ctx, c, 500)
	}
	return nil
}

// tell prints a view: its epoch and nodes.
func tell(v distrib.View) {
	var ids []string
	for _, n := range v.Nodes {
		ids = append(ids, fmt.Sprint(n.ID))
	}
	fmt.Printf("view %d %s\n", v.Epoch, strings.Join(ids, ","))
}

// put writes small values one after the other, and prints the median and how many a second.
func put(ctx context.Context, c *control.Control, n int) error {
	all := make([]time.Duration, n)
	start := time.Now()
	for i := range all {
		from := time.Now()
		if err := c.Put(ctx, "bench", []byte("value")); err != nil {
			return err
		}
		all[i] = time.Since(from)
	}
	rate := float64(n) / time.Since(start).Seconds()
	slices.Sort(all)
	fmt.Printf("put %d %.0f\n", all[n/2].Microseconds(), rate)
	return nil
}
