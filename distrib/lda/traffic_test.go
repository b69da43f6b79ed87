package lda

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/gomem/gomem/distrib/collective"
)

// TestTraffic: the files are as large as is planned, a sweep reads and writes what is planned, and
// sends no more than that, and not much less while topics are drawn.
func TestTraffic(t *testing.T) {
	d := Drawing{Docs: 2000, Length: 60, Vocab: 2000, Topics: 20, Seed: 1}
	o := Options{Topics: 300, Alpha: .1, Beta: .05, Parts: 4, BlockTokens: 9000}
	for _, n := range []int{1, 2, 4} {
		dir := t.TempDir()
		apart(t, n, func(g *collective.Group) error {
			c := shelvedIn(t, dir, d)
			want := c.Traffic(o, Use{Rank: g.Rank(), Workers: n})
			m, err := New(c, o, g)
			if err == nil {
				err = m.tabulate(t.Context())
			}
			if err != nil {
				return err
			}
			words, err := c.shelf.file.Stat()
			first := c.before(m.documents[m.own.from]) // from there on the file has topics
			topics, other := m.file.file.Stat()
			if err = errors.Join(err, other); err != nil {
				return err
			}
			if got := words.Size() + topics.Size() - 2*first; got != want.Disk {
				err = fmt.Errorf("%d bytes on the disk, %d are planned", got, want.Disk)
			}
			before := g.Stats().Sent
			err = errors.Join(err, m.Sweep(t.Context()))
			if got := g.Stats().Sent - before; got > want.Sent || got < want.Sent/2 {
				err = errors.Join(err, fmt.Errorf("%d bytes sent, %d are planned", got, want.Sent))
			}
			return errors.Join(err, m.Close(), c.Close())
		})
	}
}

// TestStreamed: what a sweep reads and writes is what the system has counted.
func TestStreamed(t *testing.T) {
	counted := func() (n int64) {
		text, err := os.ReadFile("/proc/self/io")
		if err != nil {
			t.Skip("the system does not count")
		}
		for line := range strings.Lines(string(text)) {
			var x int64
			for _, name := range []string{"rchar", "wchar"} {
				if _, err := fmt.Sscanf(line, name+": %d", &x); err == nil {
					n += x
				}
			}
		}
		return n
	}
	o := Options{Topics: 20, Alpha: .1, Beta: .05, BlockTokens: 9000}
	c := shelvedIn(t, t.TempDir(), Drawing{Docs: 3000, Length: 100, Vocab: 500, Topics: 20})
	m := started(t, c, o)
	want, before := c.Traffic(o, Use{}).Streamed, counted()
	if err := m.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := counted() - before; got < want || got > want+1<<13 {
		t.Errorf("%d bytes read and written, %d are planned", got, want)
	}
	if err := errors.Join(m.Close(), c.Close()); err != nil {
		t.Error(err)
	}
}

// TestZipf: words add up, and the n-th comes n times as rarely as the first.
func TestZipf(t *testing.T) {
	list, sum := Zipf(1_000_000, 5000), 0
	for i, n := range list {
		sum += n
		if off := n*(i+1) - list[0]; off > i+2 || off < -(i+1)*2 {
			t.Fatalf("word %d comes %d times, the first %d", i+1, n, list[0])
		}
	}
	if sum != 1_000_000 {
		t.Errorf("%d words", sum)
	}
}
