package laws_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/mesh"
)

// silent is a network over which nothing is exchanged.
type silent struct{}

func (silent) Send(context.Context, gomem.Exchange) error { return errors.New("silent") }
func (silent) Await(context.Context, string) error        { return errors.New("silent") }
func (silent) Abandon()                                   {}

// TestBlocks: the sessions of a mesh's processes have all variables, of which each keeps its
// blocks: the initial values, and those of a file, are the whole's. As a whole none is to be
// had of one process, and nothing is saved.
func TestBlocks(t *testing.T) {
	g, target := divisible(t)
	ctx, path := context.Background(), filepath.Join(t.TempDir(), "weights")
	whole, err := gomem.Compile(ctx, g, gomem.Options{Seed: 5}, target)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if err := whole.Save(path, gomem.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	spec, err := mesh.Parse("m:2x2", "w:1=m")
	if err != nil {
		t.Fatal(err)
	}
	var ranks []*gomem.Session
	for rank := range 2 {
		s, err := gomem.Compile(ctx, g, gomem.Options{Seed: 5, Mesh: spec, Rank: rank,
			Network: silent{}}, target)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ranks = append(ranks, s)
	}
	_, err = gomem.Compile(ctx, g, gomem.Options{Mesh: spec, Rank: 1}, target)
	if err == nil || !strings.Contains(err.Error(), "there is no Options.Network that joins") {
		t.Errorf("a process without the others: %v", err)
	}
	joined := func() {
		t.Helper()
		for _, v := range whole.Variables() {
			want, err := whole.Get(v)
			if err != nil {
				t.Fatal(err)
			}
			if got := pooled(t, ranks, v); !slices.Equal(got.Data, want.Data) {
				t.Errorf("%s: the blocks are %v, want %v", v, got, want)
			}
		}
	}
	joined()
	for _, v := range whole.Variables() {
		if err := whole.Set(v, gomem.NewTensor(v.Type())); err != nil {
			t.Fatal(err)
		}
		for _, s := range ranks {
			if err := s.Set(v, gomem.NewTensor(v.Type())); err != nil {
				t.Fatal(err)
			}
		}
	}
	joined()
	refusesBlocks(t, ranks[0], whole)
	for _, s := range append(ranks, whole) {
		if _, err := s.Load(path, gomem.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	joined()
	if err := ranks[0].Save(path, gomem.SaveOptions{}); !errors.Is(err, gomem.ErrApart) {
		t.Errorf("saved what is divided: %v", err)
	}
	if _, err := gomem.Plan(ctx, g, gomem.Options{Mesh: spec, Rank: 2}, target); err == nil {
		t.Error("there is a rank 2 of 2")
	}
}

// refusesBlocks has sessions refuse blocks that they have not, and of another type.
func refusesBlocks(t *testing.T, first, whole *gomem.Session) {
	t.Helper()
	for _, v := range first.Variables() {
		for i, b := range first.Blocks(v) {
			x, mine := gomem.NewTensor(b.Type(v.Type())), slices.Contains(b.Ranks, first.Rank())
			if err := first.SetBlock(v, i, x); mine != (err == nil) {
				t.Errorf("block %d of %s: %v", i, v, err)
			}
			if first.SetBlock(v, i, gomem.Scalar(1)) == nil || whole.SetBlock(v, i, x) == nil {
				t.Errorf("block %d of %s is set to a scalar, or where there is none", i, v)
			}
		}
		if first.SetBlock(v, -1, gomem.Scalar(1)) == nil {
			t.Errorf("%s has a block -1", v)
		}
	}
	if first.SetBlock(graph.Value{}, 0, gomem.Scalar(1)) == nil || first.Rank() != 0 {
		t.Error("a block of nothing is set")
	}
}

// pooled is a variable that all processes have, or some blocks of each.
func pooled(t *testing.T, ranks []*gomem.Session, v graph.Value) gomem.Tensor {
	t.Helper()
	if len(ranks[0].Blocks(v)) == 0 {
		x, err := ranks[1].Get(v)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	out := tensor.New(v.Type())
	for i, b := range ranks[0].Blocks(v) {
		for rank, s := range ranks {
			x, err := s.Block(v, i)
			if has := slices.Contains(b.Ranks, rank); has != (err == nil) {
				t.Fatalf("rank %d, block %d of %s: %v", rank, i, v, err)
			} else if has {
				b.Into(out, x)
			}
		}
		if _, err := ranks[0].Get(v); !errors.Is(err, gomem.ErrApart) {
			t.Errorf("%s as a whole: %v", v, err)
		}
	}
	return out
}
