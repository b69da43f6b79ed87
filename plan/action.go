package plan

import (
	"strings"

	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/plan/space"
)

// Action is what a step does: a [Launch], a [Copy], a [Send], an [Await] or a [Peer]. There is a
// file for each of them, which has all that this package knows of it.
type Action interface {
	// What is one word for it: an operation's name, the reason of a copy.
	What() string
	// Moves is how many bytes it takes from the one space of its engine to the other; ok
	// is false if it computes.
	Moves() (bytes int64, ok bool)

	// each calls f with every slot that the action touches, and whether it writes it.
	each(f func(slot SlotID, write bool))
	// verify proves that it is of a node, and that its stream's engine can do it to the
	// slots.
	verify(v *verifier, step int, n *graph.Node, e space.Engine) error
	// replay proves that it reads what the graph says, and notes what slots hold then.
	replay(r *replay, step int) error
	// print adds what stands in the step's line, as the parser of its word reads it.
	print(b *strings.Builder)
}

// actions are the words that begin what a step's line says of its action.
var actions = [...]struct {
	word  string
	parse func(p *parser) Action
}{
	{"launch", parseLaunch}, {"copy", parseCopy}, {"send", parseSend}, {"await", parseAwait},
	{"peer", parsePeer},
}

// Each calls f with every slot that the action touches, and whether it writes
// it.
func Each(do Action, f func(slot SlotID, write bool)) {
	if do != nil {
		do.each(f)
	}
}
