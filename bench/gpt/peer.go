package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"runtime"

	"github.com/gomem/gomem/bench/internal/torch"
)

//go:embed gpt.py
var peerSource string

// peer is a process with PyTorch that answers requests.
type peer struct{ *torch.Process }

// startPeer starts PyTorch. The error is a *torch.ErrMissing where there is none.
func startPeer(ctx context.Context, python string) (peer, error) {
	p, err := torch.Start(ctx, python, peerSource,
		torch.Environment(os.Environ(), runtime.NumCPU())...)
	return peer{p}, err
}

// ask sends a request, what to do and its arguments, and reads the reply.
func (p peer) ask(do string, arguments map[string]any, reply any) error {
	request := map[string]any{"do": do}
	maps.Copy(request, arguments)
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return p.Ask(string(line), reply)
}
