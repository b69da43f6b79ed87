package explain

import (
	"strings"
	"testing"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
)

// TestRemediesReadWell: in one line, in words of the API, with numbers.
func TestRemediesReadWell(t *testing.T) {
	for want, r := range map[string]Remedy{
		"no other option of the plan is known to help: raise the budget to that, or shrink": {},
		"policy thesis would fit: it needs 1KiB (1024 bytes)": {Change: UsePolicy,
			Policy: candidates.Thesis, Bytes: 1024},
		"with placement and swapping it would fit: it needs 1KiB": {Change: AllowBoth, Bytes: 1024},
		"a partition size of 5 would fit: it needs 1KiB": {
			Change: SmallerPartition, N: 5, Bytes: 1024},
		"a look-ahead of 1 would fit: it needs 1KiB": {
			Change: ShorterLookahead, N: 1, Bytes: 1024},
		"it needs 1KiB (1024 bytes) of host memory, too": {Change: RaiseOther, Space: space.Host,
			Bytes: 1024},
		"a disk would do: 1KiB (1024 bytes) of it": {Change: UseDisk, Space: space.Disk,
			Bytes: 1024},
	} {
		if s := r.String(); !strings.HasPrefix(s, want) {
			t.Errorf("want %q, have %q", want, s)
		}
	}
}
