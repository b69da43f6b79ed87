package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/safetensors"
)

//go:embed peer.py
var peerSource string

// peer is PyTorch with a model, in a process that waits on a pipe while gomem
// has its turn.
type peer struct{ *torch.Process }

// task is what the peer is to compute, and how.
type task struct {
	config
	Threads        int     `json:"threads"`
	Rate           float64 `json:"rate"`
	BalanceWeight  float64 `json:"balance_weight"`
	CapacityFactor float64 `json:"capacity_factor"`
	Compiled       bool    `json:"compiled"` // the loss, by torch.compile
}

// tensors are named values, in order.
type tensors struct {
	names  []string
	values map[string]tensor.View
}

func (t *tensors) add(name string, v tensor.View) {
	if t.values == nil {
		t.values = map[string]tensor.View{}
	}
	t.names = append(t.names, name)
	t.values[name] = v
}

func (t *tensors) write(w io.Writer) error {
	var entries []safetensors.Entry
	for _, name := range t.names {
		entries = append(entries, safetensors.Entry{Name: name, Type: t.values[name].Type})
	}
	get := func(e safetensors.Entry) ([]byte, error) { return t.values[e.Name].Data, nil }
	return safetensors.Write(w, entries, nil, safetensors.Whole(get))
}

// startPeer starts PyTorch and gives it a model's parameters, inputs and
// constants.
func startPeer(ctx context.Context, python string, k task, t *tensors) (*peer, error) {
	arg, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	p, err := torch.Start(ctx, python, peerSource, torch.Environment(os.Environ(), k.Threads)...)
	if err != nil {
		return nil, err
	}
	err = p.Give(func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s\n", arg); err != nil {
			return err
		}
		return t.write(w)
	})
	if err == nil {
		err = p.Answer(nil)
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return &peer{p}, nil
}

// eager is the first rival: it executes operators one by one.
const eager = 0

// startRivals starts the peers that a ratio to says something. Of them those that have
// started are returned with an error, too.
func startRivals(ctx context.Context, o options, c config, threads int, t *tensors) (
	[]*peer, error) {
	k := task{config: c, Threads: threads, Rate: learningRate, BalanceWeight: balanceWeight,
		CapacityFactor: capacityFactor}
	p, err := startRival(ctx, o.python, k, t)
	if err != nil {
		return nil, err
	}
	peers := []*peer{p}
	if k.Compiled = o.compiled; !k.Compiled {
		return peers, nil
	}
	if p, err = startRival(ctx, o.python, k, t); err != nil {
		return peers, err
	}
	return append(peers, p), nil
}

// closeAll ends the peers.
func closeAll(peers []*peer) error {
	var errs []error
	for _, p := range peers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

// startRival starts a peer that is at its best.
func startRival(ctx context.Context, python string, k task, t *tensors) (*peer, error) {
	p, err := startPeer(ctx, python, k, t)
	if err != nil {
		return nil, err
	}
	if err := torch.AtItsBest(p.BLAS); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
