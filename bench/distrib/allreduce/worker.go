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

	"github.com/gomem/gomem/distrib"
	"github.com/gomem/gomem/distrib/cluster/trust"
	"github.com/gomem/gomem/distrib/cluster/wire"
	"github.com/gomem/gomem/distrib/collective"
)

// worker is one of gomem's: it says where it listens, hears its rank and where all do, and
// then answers requests until there are no more.
func worker(ctx context.Context, r io.Reader, w io.Writer, keys string, secure bool,
	profile string) error {
	var o wire.Options
	if secure {
		authority, err := trust.ReadAuthority(keys)
		if err != nil {
			return err
		}
		id, err := authority.Identity("bench")
		if err != nil {
			return err
		}
		o = wire.Options{Server: id.Server(), Client: id.Client()}
	}
	port, err := wire.Listen("127.0.0.1:0", o)
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
	stop, err := profiled(profile)
	if err != nil {
		return err
	}
	for lines.Scan() && err == nil {
		err = answer(ctx, g, lines.Text(), w)
	}
	return errors.Join(err, lines.Err(), stop())
}

// answer makes all-reduces as a line says, and replies with how long they took.
func answer(ctx context.Context, g *collective.Group, line string, w io.Writer) error {
	var size, count int
	if _, err := fmt.Sscan(line, &size, &count); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	x := make([]float32, size/4)
	if err := collective.AllReduce(ctx, g, x, collective.Sum); err != nil {
		return err
	}
	var out reply
	for range count {
		for i := range x {
			x[i] = 1
		}
		if err := collective.Barrier(ctx, g); err != nil {
			return err
		}
		began := time.Now()
		if err := collective.AllReduce(ctx, g, x, collective.Sum); err != nil {
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
