package distrib_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/memnet"
)

// Two workers on a network in memory add to one parameter, bulk-synchronously: what is pulled
// after a tick has everything that both have pushed before it.
func Example() {
	ctx := context.Background()
	transports := memnet.New(2, memnet.Options{})
	nodes := []distrib.Node{{ID: 0}, {ID: 1}}
	var sums [2][]float32
	var workers sync.WaitGroup
	for i, t := range transports {
		e, err := distrib.New(distrib.Config{Transport: t,
			View: distrib.View{Epoch: 1, Self: distrib.NodeID(i), Nodes: nodes},
			Plan: distrib.Plan{Consistency: distrib.BSP{}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		workers.Go(func() {
			s := e.Worker(0)
			p := &distrib.Param{Name: "w", Rows: 1, Cols: 3, Data: make([]float32, 3)}
			if err := s.Attach(p); err != nil {
				fmt.Println(err)
				return
			}
			for range 4 {
				update := distrib.Dense{1, 0, float32(i)}
				if err := s.Push(ctx, distrib.Ref{}, update); err != nil {
					fmt.Println(err)
				}
				if _, err := s.Tick(ctx); err != nil {
					fmt.Println(err)
				}
			}
			if _, err := s.Pull(ctx, distrib.Ref{}); err != nil {
				fmt.Println(err)
			}
			sums[i] = p.Data
			if err := s.Close(); err != nil {
				fmt.Println(err)
			}
			<-e.Done()
		})
	}
	workers.Wait()
	for _, t := range transports {
		t.Close()
	}
	fmt.Println(sums[0], sums[1])
	// Output:
	// [8 0 4] [8 0 4]
}

// This filter sends the largest quarter of an update, and keeps the rest for later.
func ExampleParseFilter() {
	f, err := distrib.ParseFilter("topk:0.25")
	if err != nil {
		fmt.Println(err)
		return
	}
	e := &distrib.Entry{U: distrib.Dense{0.5, -4, 0.25, 1}}
	send, keep := f.Split(e, 0, distrib.Link{})
	for _, u := range []distrib.Update{send, keep} {
		row := make([]float32, 4)
		u.AddTo(row, 4, 1)
		fmt.Println(row)
	}
	_, err = distrib.ParseFilter("topk:2")
	fmt.Println(err)
	// Output:
	// [0 -4 0 0]
	// [0.5 0 0.25 1]
	// filter "topk:2": 2 is no fraction
}
