package gomem_test

import (
	"context"

	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/compile"
	"github.com/gomem/gomem/internal/longtest"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/train"
)

// leastHosts are the smallest host budgets of a model's targets, without a disk and
// with one.
func leastHosts(t *testing.T, m *models.Model, o gomem.Options) (without, with int64) {
	t.Helper()
	var err error
	if without, err = gomem.MinHost(context.Background(), m.Graph, o, train.Targets(m)...); err != nil {
		t.Fatal(err)
	}
	o.DiskBytes = 1 << 40
	if with, err = gomem.MinHost(context.Background(), m.Graph, o, train.Targets(m)...); err != nil {
		t.Fatal(err)
	}
	return without, with
}

// TestDiskDoesNotAffectResults: with a disk, the models train with host memory far
// below what they need without, to the same bits, and every memory is used up to what
// was predicted; a byte less is refused.
func TestDiskDoesNotAffectResults(t *testing.T) {
	for name, build := range five {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := build()
			if err != nil {
				t.Fatal(err)
			}
			want, err := digest(m, gomem.Options{Policy: compile.Vanilla}, 2)
			if err != nil {
				t.Fatal(err)
			}
			policies := []compile.Policy{compile.Thesis}
			if longtest.Enabled() {
				policies = append(policies, compile.Auto)
			}
			for _, policy := range policies {
				without, with := leastHosts(t, m, gomem.Options{Policy: policy})
				t.Logf("%s: the host needs %d bytes, %d with a disk", policy, without, with)
				if with > without/2 {
					t.Errorf("%s: %d bytes of host without a disk, %d with one", policy, without, with)
				}
				for _, host := range []int64{with, (with + without) / 2} {
					o := gomem.Options{Policy: policy, HostBytes: host, DiskBytes: 1 << 40,
						Disk: t.TempDir()}
					got, err := digest(m, o, 2)
					if err != nil {
						t.Fatal(err)
					}
					if got != want {
						t.Errorf("%s: other bits in %d bytes of host", policy, host)
					}
				}
				e := refusal(t, m, gomem.Options{Policy: policy, HostBytes: with - 1,
					DiskBytes: 1 << 40})
				if e == nil || e.Need != with {
					t.Errorf("%s: a byte under %d: %v", policy, with, e)
				}
			}
		})
	}
}
