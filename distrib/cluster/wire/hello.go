package wire

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"

	"google.golang.org/grpc/metadata"

	"github.com/gomem/gomem/distrib"
)

// hello is what a stream begins with.
type hello struct {
	from, to distrib.NodeID
	class    distrib.Class
	epoch    int64
	view     string // the sum of the view
}

func (h hello) metadata() metadata.MD {
	return metadata.Pairs("gomem-from", itoa(int64(h.from)), "gomem-to", itoa(int64(h.to)),
		"gomem-class", itoa(int64(h.class)), epochKey, itoa(h.epoch), viewKey, h.view)
}

// withHello is a context whose streams begin with a hello.
func withHello(ctx context.Context, h hello) context.Context {
	return metadata.NewOutgoingContext(ctx, h.metadata())
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// heard is the hello of a stream that comes in.
func heard(ctx context.Context) (hello, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	var n [4]int64
	for i, key := range []string{"gomem-from", "gomem-to", "gomem-class", epochKey} {
		v, err := strconv.ParseInt(one(md, key), 10, 64)
		if err != nil || v < 0 || i < 3 && v >= 1<<31 {
			return hello{}, fmt.Errorf("no %s in the greeting", key)
		}
		n[i] = v
	}
	h := hello{distrib.NodeID(n[0]), distrib.NodeID(n[1]), 0, n[3], one(md, viewKey)}
	if n[2] >= int64(distrib.Classes) || len(h.view) != 2*sha256.Size {
		return hello{}, fmt.Errorf("class %d, and a view of %d characters", n[2], len(h.view))
	}
	h.class = distrib.Class(n[2])
	return h, nil
}

// sumView is what two nodes' views are compared by: the epoch, and all nodes with their
// addresses and roles.
func sumView(v distrib.View) string {
	sum := sha256.New()
	text := func(s string) {
		sum.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(s))))
		sum.Write([]byte(s))
	}
	number := func(n int64) { sum.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	number(v.Epoch)
	number(int64(len(v.Nodes)))
	for _, n := range v.Nodes {
		number(int64(n.ID))
		text(n.Addr)
		number(int64(len(n.Roles)))
		for _, r := range n.Roles {
			text(r)
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}
