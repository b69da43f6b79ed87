package workers

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/distrib/collective"
)

// Agree compares the exchanges of all workers, and those along an axis of their mesh of the
// workers of each line: a hash of them all, and only if it differs hashes of each, and then the
// first that differs. Everybody hears of all, and so of what differs on another line. Where
// workers come and go, each name is compared when it is first sent instead.
func (n *network) Agree(ctx context.Context, targets []gomem.Exchanges) error {
	if n.member.options.Elastic != nil {
		return nil
	}
	at := n.member.at()
	ctx, release := at.desk.Within(ctx)
	defer release()
	for _, axis := range at.axes() {
		if err := n.compare(ctx, labels(targets, axis), n.heads(axis)); err != nil {
			return n.why(err)
		}
	}
	return nil
}

// heads are, by rank, the first of those who exchange along an axis with it.
func (n *network) heads(axis string) []int {
	mesh := n.member.options.Mesh
	list := make([]int, n.member.at().group.Size())
	for rank := range list {
		if i := slices.Index(mesh.Names, axis); i >= 0 {
			list[rank] = mesh.Along(i, rank)[0]
		}
	}
	return list
}

// labels are a text for each exchange along an axis, in order, with all that must be the same.
func labels(targets []gomem.Exchanges, axis string) (list []string) {
	for _, t := range targets {
		for _, x := range t.List {
			if x.How.Along != axis {
				continue
			}
			label := fmt.Sprintf("%s: %s %s %s of %d, root %d", t.Target, x.Name, x.Type, x.How,
				x.Parts, x.Root)
			if x.To != nil {
				label += fmt.Sprint(", to ", x.To)
			}
			if x.How.Fold.Some() {
				label += fmt.Sprintf(", by %d of %d rows", x.Each, x.Rows)
			}
			list = append(list, label)
		}
	}
	return list
}

// hashed is 64 bits of a text.
func hashed(text string) int64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return int64(h.Sum64())
}

// compare is nil if all workers have the same list as the heads of their lines.
func (n *network) compare(ctx context.Context, list []string, heads []int) error {
	all, err := gather(ctx, n, []int64{hashed(strings.Join(list, "\n")), int64(len(list))})
	if err != nil {
		return err
	}
	same, longest := true, int64(0)
	for rank, x := range all {
		same = same && slices.Equal(x, all[heads[rank]])
		longest = max(longest, x[1])
	}
	if same {
		return nil
	}
	each := make([]int64, longest)
	for i, text := range list {
		each[i] = hashed(text)
	}
	if all, err = gather(ctx, n, each); err != nil {
		return err
	}
	for i := range longest {
		for rank, x := range all {
			if head := heads[rank]; x[i] != all[head][i] {
				return n.differ(ctx, list, int(i), head, rank)
			}
		}
	}
	return fmt.Errorf("workers have other exchanges, of one hash each")
}

// labelSize is how much of a line workers show one another.
const labelSize = 256

// differ names an exchange that is another one on a worker than on the head of its line.
func (n *network) differ(ctx context.Context, list []string, i, head, rank int) error {
	own := make([]uint8, labelSize)
	if i < len(list) {
		copy(own, list[i])
	}
	all, err := gather(ctx, n, own)
	if err != nil {
		return err
	}
	what := func(rank int) string {
		if text := strings.TrimRight(string(all[rank]), "\x00"); text != "" {
			return text
		}
		return "none"
	}
	desk := n.member.at().desk
	return fmt.Errorf("workers must have the same exchanges in the same order: number %d is "+
		"%q on worker %d and %q on worker %d", i+1, what(head), desk.number(head), what(rank),
		desk.number(rank))
}

// gather is what all workers have for x, which is as long for each, by rank.
func gather[T collective.Number](ctx context.Context, n *network, x []T) ([][]T, error) {
	g := n.member.at().group
	all := make([]T, g.Size()*len(x))
	copy(all[g.Rank()*len(x):], x)
	if err := collective.AllGather(ctx, g, all); err != nil {
		return nil, err
	}
	return slices.Collect(slices.Chunk(all, max(1, len(x)))), nil
}
