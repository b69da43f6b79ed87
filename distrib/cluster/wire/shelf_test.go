package wire

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/gomem/gomem/distrib"
)

// TestShelf: messages have the sizes that were asked for, no two of them share memory, and
// what is kept stays within its bound.
func TestShelf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &shelf{most: int64(rapid.IntRange(0, 1<<20).Draw(t, "most"))}
		used := map[*byte]bool{}
		var out []*distrib.Msg
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			if len(out) > 0 && rapid.Bool().Draw(t, "let go") {
				m := out[0]
				out = out[1:]
				if len(m.Body) > 0 {
					delete(used, &m.Body[0][0])
				}
				if m.Done != nil {
					m.Done(nil)
				}
				continue
			}
			head := rapid.IntRange(0, 100).Draw(t, "head")
			body := rapid.IntRange(0, 1<<rapid.IntRange(0, 21).Draw(t, "log")).Draw(t, "body")
			m, room := s.message(head, body)
			if len(m.Head) != head || len(room) != body || (body > 0) != (len(m.Body) == 1) {
				t.Fatalf("%d and %d bytes of %d and %d", len(m.Head), len(room), head, body)
			}
			if body > 0 {
				if used[&room[0]] || &m.Body[0][0] != &room[0] {
					t.Fatal("the memory of another message")
				}
				used[&room[0]] = true
			}
			out = append(out, m)
		}
		if s.kept < 0 || s.kept > s.most {
			t.Fatalf("%d bytes are kept, at most %d may be", s.kept, s.most)
		}
	})
}
