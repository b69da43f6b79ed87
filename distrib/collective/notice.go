package collective

import (
	"encoding/binary"
	"errors"
	"strings"
)

// notice is what the next rank is told of an exchange that is new.
type notice struct {
	seq, check uint64
	label      string
}

// noticeSize is how long all notices are: labels are cut, the hash is of the whole.
const noticeSize = 256

// notices is how many may wait at a node.
const notices = 32

// orderTag is the tag of notices.
const orderTag = 1

func (n *notice) bytes() []byte {
	b := make([]byte, 16, noticeSize)
	binary.LittleEndian.PutUint64(b, n.seq)
	binary.LittleEndian.PutUint64(b[8:], n.check)
	b = append(b, n.label[:min(len(n.label), noticeSize-len(b))]...)
	return b[:noticeSize]
}

func parseNotice(b []byte) notice {
	return notice{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]),
		strings.TrimRight(string(b[16:]), "\x00")}
}

// compare compares the labels of new exchanges with those of the rank before, in order,
// whatever lanes they take.
func (e *Exchanger) compare() {
	g := e.order
	buf := make([]byte, noticeSize)
	for mine, ok := e.news.pop(); ok; mine, ok = e.news.pop() {
		g.notify((g.rank+1)%g.Size(), orderTag, mine.bytes())
		before := (g.rank + g.Size() - 1) % g.Size()
		err := g.recv(e.ctx, before, orderTag, buf, true)
		if errors.Is(err, errLeft) {
			continue // it has all that it exchanged; what needs more of it fails in its lane
		}
		if theirs := parseNotice(buf); err == nil && (theirs.check != mine.check) {
			err = &MismatchError{Node: g.members[before], Seq: mine.seq, Mine: mine.label,
				Theirs: theirs.label}
		}
		if err != nil {
			e.fail(err)
			return
		}
	}
}
