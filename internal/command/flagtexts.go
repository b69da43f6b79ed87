package command

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// clustered are the commands that the plain program has no use for.
var clustered = []string{"doctor", "explain-loop", "fabric", "restore"}

// hide hides the flags that the program has no use for: it says so when they are given.
func (x Extras) hide(k *kong.Kong) error {
	return kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok && x.Cluster == nil {
			n.Hidden = n.Hidden || slices.Contains(clustered, n.Name)
			for _, f := range n.Flags {
				f.Hidden = f.Hidden || f.Group != nil && f.Group.Key == "job"
			}
		}
		return next(nil)
	})
}

// parseTexts reads names at the start of lines, and their texts on the indented
// lines that follow.
func parseTexts(all string) map[string]string {
	texts := map[string]string{}
	name := ""
	for line := range strings.Lines(all) {
		text := strings.TrimSpace(line)
		switch {
		case text == "":
		case line[0] != ' ':
			name = text
		default:
			texts[name] = strings.TrimPrefix(texts[name]+" "+text, " ")
		}
	}
	return texts
}
