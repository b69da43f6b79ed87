//go:build linux && amd64 && !nocuda

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"os"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/graph/precision"
)

//go:embed peer.py
var program string

// request is what the peer is asked for.
type request struct {
	config
	Variant   string              `json:"variant"`
	Precision precision.Precision `json:"precision"`
	Device    string              `json:"device"`
	Cap       int64               `json:"cap"` // bytes; 0 is none
	Warm      int                 `json:"warm"`
	Least     int                 `json:"least"`
	Most      int                 `json:"most"`
	Seconds   float64             `json:"seconds"`
}

// asked is what a variant is asked for.
func (b *bench) asked(c config, l limits, in precision.Precision, variant string,
	n steps) request {
	r := request{config: c, Variant: variant, Precision: in, Device: "cuda", Cap: l.device,
		Warm: n.warm, Least: n.least, Most: n.most, Seconds: n.seconds}
	if b.emulate {
		r.Device = "cpu"
	}
	return r
}

// peer runs a variant in a process of its own, so that nothing is left of the one before.
func (b *bench) peer(ctx context.Context, c config, l limits, in precision.Precision,
	variant string) (r result, err error) {
	err = b.torch(ctx, func(p *torch.Process) error {
		r, err = answered(p, b.asked(c, l, in, variant, b.steps()))
		return err
	})
	return r, err
}

// torch calls a function with a process.
func (b *bench) torch(ctx context.Context, f func(p *torch.Process) error) (err error) {
	p, err := torch.Start(ctx, b.python, program, append(os.Environ(),
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")...) // or blocks leave gaps under a cap
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return f(p)
}

// answered is a process' answer.
func answered(p *torch.Process, ask request) (r result, err error) {
	line, err := json.Marshal(ask)
	if err != nil {
		return r, err
	}
	return r, p.Ask(string(line), &r)
}
