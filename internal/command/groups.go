package command

import (
	"cmp"
	"slices"

	"github.com/alecthomas/kong"
)

// groups are what --help gathers flags under, in this order.
var groups = []kong.Group{
	{Key: "used", Title: "Most used"},
	{Key: "model", Title: "Model"},
	{Key: "data", Title: "Data"},
	{Key: "training", Title: "Training"},
	{Key: "run", Title: "The run"},
	{Key: "plan", Title: "Memory and time (never the results, but for rounding by --mesh)"},
	{Key: "machine", Title: "Machine"},
	{Key: "output", Title: "Output"},
	{Key: "job", Title: "Several workers"},
}

// used are the flags of a command that are used the most, in order: they come before the others,
// and not in their own group again.
var used = map[string][]string{
	"train": {"model", "size", "data", "batch", "steps", "lr", "device-memory", "policy", "save",
		"resume"},
	"plan": {"model", "size", "batch", "device-memory", "policy", "partition", "device", "advise",
		"sweep", "json"},
	"fit": {"max", "model", "size", "device-memory", "policy", "json"},
	"profile": {"model", "size", "batch", "device-memory", "policy", "device", "steps-to-run",
		"html"},
}

// arrange has the flags of every command in the order of their groups.
func arrange(k *kong.Kong) error {
	return kong.Visit(k.Model.Node, func(v kong.Visitable, next kong.Next) error {
		if n, ok := v.(*kong.Node); ok {
			for _, f := range n.Flags {
				if slices.Contains(used[n.Name], f.Name) {
					f.Group = &groups[0]
				}
			}
			slices.SortStableFunc(n.Flags, func(a, b *kong.Flag) int {
				return cmp.Or(cmp.Compare(rankOfGroup(a), rankOfGroup(b)), cmp.Compare(
					slices.Index(used[n.Name], a.Name), slices.Index(used[n.Name], b.Name)))
			})
		}
		return next(nil)
	})
}

// rankOfGroup is the place of a flag's group, from 0; -1 of a flag without any.
func rankOfGroup(f *kong.Flag) int {
	return slices.IndexFunc(groups, func(g kong.Group) bool {
		return f.Group != nil && f.Group.Key == g.Key
	})
}
