package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/internal/longtest"
)

// TestBesidePyTorch: two workers end with PyTorch's parameters.
func TestBesidePyTorch(t *testing.T) {
	longtest.Skip(t)
	var b strings.Builder
	err := run(t.Context(), "/usr/bin/python3", &b)
	if missing, ok := errors.AsType[*torch.ErrMissing](err); ok {
		t.Skip(missing)
	}
	if err != nil || strings.Count(b.String(), "f32[") != 6 {
		t.Errorf("%v\n%s", err, b.String())
	}
}
