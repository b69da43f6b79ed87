package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/distrib/collective"
)

// worker is one of gomem's: it says where it listens, hears its rank and where all do, and
// then answers requests until there are no more.
func worker(ctx context.Context, r io.Reader, w io.Writer, s settings) error {
	o := wire.Options{Insecure: true}
	if s.secure {
		authority, err := trust.ReadAuthority(s.keys)
		if err != nil {
			return err
		}
		id, err := authority.Identity("bench")
		if err != nil {
			return err
		}
		o = wire.Options{Server: id.Server(), Client: id.Client()}
	}
	port, err := wire.Listen(s.listen, o)
	if err != nil {
		return err
	}
	defer port.Close()
	fmt.Fprintln(w, port.Addr())
	lines := bufio.NewScanner(r)
	if !lines.Scan() {
		return lines.Err()
	}
	view := distrib.View{Epoch: 1}
	var members []distrib.NodeID
	for i, s := range strings.Fields(lines.Text()) {
		if i == 0 {
			rank, err := strconv.Atoi(s)
			if err != nil {
				return err
			}
			view.Self = distrib.NodeID(rank)
			continue
		}
		members = append(members, distrib.NodeID(i-1))
		view.Nodes = append(view.Nodes, distrib.Node{ID: distrib.NodeID(i - 1), Addr: s})
	}
	t, err := port.Open(view)
	if err != nil {
		return err
	}
	mux, err := collective.NewMux(t, collective.Options{Epoch: 1})
	if err != nil {
		return err
	}
	defer mux.Close()
	g, err := mux.Group(members...)
	if err != nil {
		return err
	}
	e, err := collective.NewExchanger(g, collective.ExchangerOptions{})
	if err != nil {
		return err
	}
	stop, err := profiled(s.profile)
	if err != nil {
		return err
	}
	for lines.Scan() && err == nil {
		err = answer(ctx, g, e, lines.Text(), w)
	}
	return errors.Join(err, lines.Err(), e.Close(), stop())
}

// answer does what a line asks for, several times, and replies with how long it took.
func answer(ctx context.Context, g *collective.Group, e *collective.Exchanger, line string,
	w io.Writer) error {
	var a ask
	if _, err := fmt.Sscan(line, &a.what, &a.size, &a.count, &a.compute); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	x := make([]float32, a.size/4)
	do := func() error { return collective.AllReduce(ctx, g, x, collective.Sum) }
	if a.what != sum {
		via, err := collective.ParseVia(a.what)
		if err != nil {
			return err
		}
		do = func() error { return step(ctx, e, x, via, a.compute) }
	}
	if err := do(); err != nil {
		return err
	}
	var out reply
	for range a.count {
		for i := range x {
			x[i] = 1
		}
		if err := collective.Barrier(ctx, g); err != nil {
			return err
		}
		began := time.Now()
		if err := do(); err != nil {
			return err
		}
		out.Seconds = append(out.Seconds, time.Since(began).Seconds())
	}
	if n := float32(g.Size()); x[0] != n || x[len(x)-1] != n {
		return errors.New("the sum is wrong")
	}
	text, err := json.Marshal(out)
	if err == nil {
		_, err = fmt.Fprintf(w, "%s\n", text)
	}
	return err
}

// layers are a step's, each of which has as many gradients.
const layers = 8

// step sums up each layer's gradients while the next ones are computed, which is to wait.
func step(ctx context.Context, e *collective.Exchanger, x []float32, via collective.Via,
	compute float64) error {
	for i := range layers {
		time.Sleep(time.Duration(compute / layers * float64(time.Second)))
		lo, hi := collective.Block(len(x), layers, i)
		part := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x[lo:hi]))), 4*(hi-lo))
		err := e.Send(collective.Exchange{Name: fmt.Sprint(via, i, len(x)), Via: via, Data: part})
		if err != nil {
			return err
		}
	}
	for i := range layers {
		if err := e.Await(ctx, fmt.Sprint(via, i, len(x))); err != nil {
			return err
		}
	}
	return nil
}

// profiled starts a profile if there is a file for it.
func profiled(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() error { pprof.StopCPUProfile(); return f.Close() }, pprof.StartCPUProfile(f)
}
