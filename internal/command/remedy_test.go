package command

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// TestAdvice: every remedy reads as flags, with the budget that it needs.
func TestAdvice(t *testing.T) {
	for want, r := range map[string]planner.Remedy{
		"raise --device-memory to that; gomem plan --advise, with the same flags, ranks what " +
			"else would do": {},
		"--policy thesis would fit: it needs 1KiB (1,024 bytes)": {Change: planner.UsePolicy,
			Policy: planner.Thesis, Bytes: 1024},
		"leaving out --no-placement and --no-swap would fit: it needs 1KiB (1,024 bytes)": {
			Change: planner.AllowBoth, Bytes: 1024},
		"--partition 5 would fit: it needs 1KiB (1,024 bytes)": {Change: planner.SmallerPartition,
			N: 5, Bytes: 1024},
		"--lookahead 1 would fit: it needs 1KiB (1,024 bytes)": {Change: planner.ShorterLookahead,
			N: 1, Bytes: 1024},
		"raise --device-memory to that, and --host-memory to 1KiB (1,024 bytes)": {
			Change: planner.RaiseOther, Space: space.Host, Bytes: 1024},
		"raise --device-memory to that, or --disk-memory 1024 would do (1KiB, with --disk DIR to " +
			"train)": {Change: planner.UseDisk, Space: space.Disk, Bytes: 1024},
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

// TestRefusalsNameWhatFits: a partition size that fits is named, and of one that does not fit
// either nothing is said.
func TestRefusalsNameWhatFits(t *testing.T) {
	refused := func(budget string) string {
		o := invoke(t, "plan", "--model", "transformer", "--size", "s512", "--partition", "200",
			"--device-memory", budget)
		if o.status != exitFailure || !strings.Contains(o.stderr, "train needs ") {
			t.Errorf("within %s: %+v", budget, o)
		}
		return o.stderr
	}
	said := refused("1KiB")
	if strings.Contains(said, "--partition") || !strings.Contains(said, "plan --advise") {
		t.Errorf("within 1KiB: %s", said)
	}
	if said := refused("500KiB"); !strings.Contains(said, "; --partition 50 ") ||
		!strings.Contains(said, "would fit: it needs") {
		t.Errorf("within 500KiB: %s", said)
	}
}
