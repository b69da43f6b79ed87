package workers

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
)

// bytesAt are a place of a device that may fail.
type bytesAt struct {
	data  []byte
	fails error
}

func (b *bytesAt) Pull(to int64, from gomem.Place, at, n int64) error {
	copy(b.data[to:to+n], from.(*bytesAt).data[at:at+n])
	return b.fails
}

func (b *bytesAt) Clear() error {
	clear(b.data)
	return b.fails
}

// meet has three workers exchange between their devices.
func meet(p *Peers, x gomem.Exchange, from, to [3]*bytesAt) (errs [3]error) {
	var all sync.WaitGroup
	for rank := range 3 {
		all.Go(func() {
			l := &line{rank: rank, size: 3}
			list, err := needs(x, l.rank, l.size)
			if err == nil {
				err = p.exchange(context.Background(), x.Name, l, list, from[rank], to[rank])
			}
			errs[rank] = err
		})
	}
	all.Wait()
	return errs
}

// TestPeersMeet: three devices have what every exchange makes, twice by one name; where nothing is
// sent to there are zeros.
func TestPeersMeet(t *testing.T) {
	p := NewPeers()
	for _, c := range []struct {
		x    gomem.Exchange
		want [3]string
	}{
		{gomem.Exchange{How: graph.How{Fold: graph.Gather}}, [3]string{"abcdefghi", "abcdefghi",
			"abcdefghi"}},
		{gomem.Exchange{How: graph.How{Fold: graph.Swap}}, [3]string{"adg", "beh", "cfi"}},
		{gomem.Exchange{How: graph.How{Fold: graph.Copy}, Root: 1}, [3]string{"def", "def", "def"}},
		{gomem.Exchange{How: graph.How{Fold: graph.Permute}, To: []int{2, -1, 1}},
			[3]string{"\x00\x00\x00", "ghi", "abc"}},
	} {
		for range 2 {
			c.x.Name = "x"
			c.x.Type = tensor.Of(tensor.U8, len(c.want[0]))
			var from, to [3]*bytesAt
			for i, s := range []string{"abc", "def", "ghi"} {
				from[i] = &bytesAt{data: []byte(s)}
				to[i] = &bytesAt{data: bytes.Repeat([]byte("?"), 9)}
			}
			errs := meet(p, c.x, from, to)
			for i, want := range c.want {
				if got := string(to[i].data[:len(want)]); got != want || errs[i] != nil {
					t.Errorf("%s: rank %d has %q, %v: want %q", c.x.How, i, got, errs[i], want)
				}
			}
		}
	}
	if _, err := needs(gomem.Exchange{How: graph.How{Fold: graph.Sum}}, 0, 3); err == nil {
		t.Error("a sum goes from device to device")
	}
}

// TestPeersPart: when a device fails, or a worker does not come, all others are told, and nobody
// waits for anybody.
func TestPeersPart(t *testing.T) {
	alive := goleak.IgnoreCurrent()
	gone, cancel := context.WithCancelCause(context.Background())
	lost, bad, one := errors.New("lost"), errors.New("bad"), context.Background()
	x := gomem.Exchange{Name: "x", Type: tensor.Of(tensor.U8, 3),
		How: graph.How{Fold: graph.Swap}}
	places := func() (all [3]*bytesAt) {
		for i := range all {
			all[i] = &bytesAt{data: make([]byte, 3)}
		}
		return all
	}
	to := places()
	to[1].fails = bad
	p := NewPeers()
	errs := meet(p, x, places(), to)
	if !errors.Is(errs[1], bad) || !errors.Is(errs[0], errApart) || !errors.Is(errs[2], errApart) {
		t.Errorf("a device fails: %v", errs)
	}
	if err := p.exchange(one, "y", &line{size: 2}, nil, to[0], to[0]); !errors.Is(err, errApart) {
		t.Errorf("after that: %v", err)
	}
	cancel(lost)
	p = NewPeers()
	list := []copies{{1, 0, 0, 1}}
	if err := p.exchange(gone, "x", &line{rank: 0, size: 2}, list, to[0], to[0]); err != lost {
		t.Errorf("without another: %v", err)
	}
	err := p.exchange(one, "x", &line{rank: 1, size: 2}, list, to[2], to[2])
	if !errors.Is(err, errApart) {
		t.Errorf("the other: %v", err)
	}
	goleak.VerifyNone(t, alive)
}
