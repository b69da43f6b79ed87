package explain

import (
	"fmt"
	"math"

	"github.com/docker/go-units"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner/candidates"
)

// Change is what a remedy changes.
type Change int

// The changes.
const (
	Shrink           Change = iota // the batch or the model: no other option is known to help
	UsePolicy                      // to Remedy.Policy, by its defaults
	AllowBoth                      // placement on the host, and swapping
	SmallerPartition               // to Remedy.N operations
	ShorterLookahead               // to Remedy.N partitions
	RaiseOther                     // the budget of Remedy.Space, beside the one that is short
	UseDisk                        // a disk behind the host, with Remedy.Bytes of it
)

// Remedy is what would help where memory is short.
type Remedy struct {
	Change Change
	Policy candidates.Policy
	N      int
	Space  space.ID
	// Bytes is a budget of Space that works with the change, no larger than the present one but
	// for RaiseOther and UseDisk. There may be a smaller one, but for RaiseOther.
	Bytes int64
}

// String is the remedy in words of the API.
func (r Remedy) String() string {
	switch r.Change {
	case UsePolicy:
		return fmt.Sprintf("policy %s %s", r.Policy, r.effect())
	case AllowBoth:
		return "with placement and swapping it " + r.effect()
	case SmallerPartition:
		return fmt.Sprintf("a partition size of %d %s", r.N, r.effect())
	case ShorterLookahead:
		return fmt.Sprintf("a look-ahead of %d %s", r.N, r.effect())
	case RaiseOther:
		return fmt.Sprintf("it needs %s (%d bytes) of %s memory, too",
			units.BytesSize(float64(r.Bytes)), r.Bytes, r.Space)
	case UseDisk:
		return fmt.Sprintf("a disk would do: %s (%d bytes) of it",
			units.BytesSize(float64(r.Bytes)), r.Bytes)
	}
	return "no other option of the plan is known to help: raise the budget to that, or shrink " +
		"the batch or the model"
}

// effect is what the change comes to, as the end of a sentence.
func (r Remedy) effect() string {
	return fmt.Sprintf("would fit: it needs %s (%d bytes)", units.BytesSize(float64(r.Bytes)),
		r.Bytes)
}

// remedy tries what a user could change, the gentlest first. It is the first that fits.
func remedy(s *candidates.Search, e *ErrOutOfMemory) (Remedy, error) {
	for _, t := range trials(s.Options, e.Space) {
		bytes, err := s.OtherOptions(t.options, e.Space, e.Budget)
		if err != nil {
			return Remedy{}, err
		}
		if bytes > 0 {
			r := t.remedy
			r.Space, r.Bytes = e.Space, bytes
			return r, nil
		}
	}
	return diskRemedy(s)
}

// diskRemedy is a disk that would take over what the host has no room for, if there is none and
// the budget of the host is what is too small.
func diskRemedy(s *candidates.Search) (Remedy, error) {
	if s.Options.DiskBytes > 0 {
		return Remedy{}, nil
	}
	host, err := s.Minimum(space.Host)
	if host == nil || err != nil {
		return Remedy{}, err
	}
	o := s.Options
	o.DiskBytes = math.MaxInt64
	bytes, err := s.OtherOptions(o, space.Disk, math.MaxInt64)
	if bytes == 0 || err != nil {
		return Remedy{}, err
	}
	return Remedy{Change: UseDisk, Space: space.Disk, Bytes: bytes}, nil
}

// trial is a remedy with the options that it leads to.
type trial struct {
	remedy  Remedy
	options candidates.Options
}

func trials(o candidates.Options, short space.ID) []trial {
	var out []trial
	add := func(r Remedy, change func(*candidates.Options)) {
		next := o
		change(&next)
		next.EnsureDefaults()
		out = append(out, trial{r, next})
	}
	if !o.Policy.Partitioned() {
		for _, p := range []candidates.Policy{candidates.Thesis, candidates.Auto} {
			add(Remedy{Change: UsePolicy, Policy: p}, func(n *candidates.Options) {
				n.Policy, n.Strategy, n.Partition, n.Lookahead = p, "", 0, 0
				n.NoPlacement, n.NoSwap = false, false
			})
		}
		return out
	}
	useAuto := func() {
		if !o.Policy.Searches() {
			add(Remedy{Change: UsePolicy, Policy: candidates.Auto},
				func(n *candidates.Options) { n.Policy = candidates.Auto })
		}
	}
	if short == space.Host {
		useAuto()
	}
	if o.NoPlacement || o.NoSwap {
		add(Remedy{Change: AllowBoth},
			func(n *candidates.Options) { n.NoPlacement, n.NoSwap = false, false })
	}
	for _, size := range smaller(o) {
		add(Remedy{Change: SmallerPartition, N: size},
			func(n *candidates.Options) { n.Partition = size })
	}
	if o.Lookahead > 1 && !o.Policy.Searches() {
		add(Remedy{Change: ShorterLookahead, N: 1}, func(n *candidates.Options) { n.Lookahead = 1 })
	}
	if short != space.Host {
		useAuto()
	}
	return out
}

// smaller are the partition sizes to try below the options'. A policy that searches
// has tried them.
func smaller(o candidates.Options) []int {
	var out []int
	for _, n := range []int{50, 20, 5, 1} {
		if n < o.Partition && !o.Policy.Searches() {
			out = append(out, n)
		}
	}
	return out
}

// Partition is the partition size below the options' of a search, of a few that are tried,
// with which its graph needs the least of the device within the host's budget, and a device budget
// that works with it, as a remedy. If none needs less than so many bytes, it is to Shrink.
func Partition(s *candidates.Search, bytes int64) (Remedy, error) {
	best := Remedy{Space: space.Device, Bytes: bytes}
	for _, size := range smaller(s.Options) {
		next := s.Options
		next.Partition = size
		bytes, err := s.OtherOptions(next, space.Device, best.Bytes)
		if err != nil {
			return Remedy{}, err
		}
		if 0 < bytes && bytes < best.Bytes {
			best = Remedy{Change: SmallerPartition, N: size, Space: space.Device, Bytes: bytes}
		}
	}
	return best, nil
}
