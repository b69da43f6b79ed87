package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/space"
)

// TestAdvice: every remedy reads as flags, with the budget that it needs.
func TestAdvice(t *testing.T) {
	for want, r := range map[string]compile.Remedy{
		"use a smaller batch or model, or raise --device-memory": {},
		"--policy thesis would fit: it needs 1KiB (1,024 bytes)": {Change: compile.UsePolicy,
			Policy: compile.Thesis, Bytes: 1024, Fits: true},
		"leaving out --no-placement and --no-swap would need 1KiB (1,024 bytes)": {
			Change: compile.AllowBoth, Bytes: 1024},
		"--partition 5 would need 1KiB (1,024 bytes)": {Change: compile.SmallerPartition, N: 5,
			Bytes: 1024},
		"--lookahead 1 would need 1KiB (1,024 bytes)": {Change: compile.ShorterLookahead, N: 1,
			Bytes: 1024},
		"raise --device-memory, and --host-memory to 1KiB (1,024 bytes)": {
			Change: compile.RaiseOther, Space: space.Host, Bytes: 1024},
		"--disk-memory 1024 would do (1KiB, with --disk DIR to train)": {Change: compile.UseDisk,
			Space: compile.Disk, Bytes: 1024},
	} {
		library := &gomem.ErrOutOfMemory{Target: "train", Remedy: r}
		err := inFlags(fmt.Errorf("gomem: %w", library))
		if !strings.HasSuffix(err.Error(), "; "+want) {
			t.Errorf("want %q, have %q", want, err)
		}
		if e, ok := errors.AsType[*gomem.ErrOutOfMemory](err); !ok || e != library {
			t.Error("the library's error is lost")
		}
	}
	if plain := errors.New("x"); inFlags(plain) != plain {
		t.Error("another error is changed")
	}
}

// TestRefusalsSayBoth: what the partition size at hand needs, and what a smaller
// one would do with.
func TestRefusalsSayBoth(t *testing.T) {
	o := invoke(t, "plan", "--model", "transformer", "--size", "s512", "--partition", "200",
		"--device-memory", "1KiB")
	if o.status != exitFailure || !strings.Contains(o.stderr, "train needs ") ||
		!strings.Contains(o.stderr, "; --partition ") || !strings.Contains(o.stderr, "would need") {
		t.Errorf("%+v", o)
	}
}
