package train

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/internal/safetensors"
	"github.com/gomem/gomem/nn"
)

// initial is where the variables of a new run have values from. Optimizers begin anew.
type initial struct {
	path   string
	rename Renaming
}

// into gives the variables of a session of g the values that there are for them, and says what
// was taken. parts are of what is divided among processes.
func (i initial) into(s *gomem.Session, g *graph.Graph) (parts []gomem.Part, e Event, err error) {
	if i.rename == nil && IsPublic(i.path) {
		return i.public(s, g)
	}
	file, err := find(i.path)
	if err != nil {
		return nil, e, err
	}
	if err := i.numbers(file, g); err != nil {
		return nil, e, &ErrCheckpoint{Path: file, Err: bare(err)}
	}
	applied := make([][]string, len(i.rename))
	report, err := s.Load(file, gomem.LoadOptions{Partial: true, Convert: true,
		Only: weight(g), Rename: func(theirs string) string {
			ours, line := i.rename.apply(theirs)
			if line >= 0 {
				applied[line] = append(applied[line], ours)
			}
			return ours
		}})
	if _, read := errors.AsType[*gomem.LoadError](err); err == nil || read {
		if fruitless := i.rename.fruitless(applied, g); fruitless != nil {
			return nil, e, &ErrOption{Option: "names of initial weights", Err: fruitless}
		}
	}
	if err != nil {
		return nil, e, &ErrCheckpoint{Path: file, Err: initialTrouble(err)}
	}
	return report.Parts, Event{Kind: Init, Path: file, Text: taken(report)}, nil
}

// public gives all parameters the values of a public checkpoint.
func (i initial) public(s *gomem.Session, g *graph.Graph) (parts []gomem.Part, e Event,
	err error) {
	p, err := OpenPublic(i.path)
	if err != nil {
		return nil, e, err
	}
	var vars []graph.Value
	for _, v := range s.Variables() {
		if !v.Node.State && !nn.IsAdapter(v.Node.Name) {
			vars = append(vars, v)
		}
	}
	if parts, err = p.load(s, vars); err != nil {
		return nil, e, err
	}
	said := []string{fmt.Sprintf("%d variables taken", len(vars))}
	if more := p.without(vars); len(more) > 0 {
		said[0] += fmt.Sprintf(", %d left over (%s)", len(more), firstOf(more))
	}
	said = append(said, p.Notes...)
	return parts, Event{Kind: Init, Path: i.path, Text: strings.Join(said, "; ")}, nil
}

// numbers refuses a file that has whole numbers for a variable of floating-point ones: such
// are quantized weights, which are nothing without their scales.
func (i initial) numbers(file string, g *graph.Graph) error {
	f, err := safetensors.Open(file)
	if err != nil {
		return err
	}
	defer closeRead(f)
	ours := map[string]graph.Type{}
	for _, n := range g.Variables() {
		ours[n.Name] = n.Out[0]
	}
	for _, e := range f.Entries() {
		name := i.rename.Apply(e.Name)
		if t := ours[name]; t.DType.Floating() && !e.Type.DType.Floating() &&
			t.SameShape(e.Type) {
			return fmt.Errorf("tensor %s is %s, and variable %s %s: want floating-point numbers",
				e.Name, e.Type, name, t)
		}
	}
	return nil
}

// initialTrouble is what is wrong with a file of initial values, without its path.
func initialTrouble(err error) error {
	if e, ok := errors.AsType[*gomem.LoadError](err); ok {
		return fmt.Errorf("has no variable of this model: %s", taken(e.Report))
	}
	return bare(err)
}

// Learnt tells what a model has learnt from the state of its optimizers.
func Learnt(g *graph.Graph) func(v graph.Value) bool { return weight(g) }

// weight tells what a model has learnt from the state of its optimizer, and from what is
// added up of several batches: that is named after the variable that it is for.
func weight(g *graph.Graph) func(v graph.Value) bool {
	variables := map[string]bool{}
	for _, n := range g.Variables() {
		variables[n.Name] = true
	}
	return func(v graph.Value) bool {
		return !v.Node.State || !variables[path.Dir(v.Node.Name)]
	}
}

// taken says what became of variables and tensors.
func taken(r gomem.LoadReport) string {
	parts := []string{fmt.Sprintf("%d variables taken", len(r.Loaded))}
	add := func(n int, what, example string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, example))
		}
	}
	if len(r.Missing) > 0 {
		add(len(r.Missing), "not in the file", firstOf(r.Missing))
	}
	if len(r.Other) > 0 {
		o := r.Other[0]
		add(len(r.Other), "of another shape",
			fmt.Sprintf("%s is %s there, %s here", o.Name, o.Saved, o.Want))
	}
	if len(r.Leftover) > 0 {
		add(len(r.Leftover), "left over", firstOf(r.Leftover))
	}
	return strings.Join(parts, ", ")
}

// firstOf shows a name of some.
func firstOf(names []string) string {
	if len(names) == 1 {
		return shownName(names[0])
	}
	return shownName(names[0]) + ", …"
}

// Renaming maps the names of a file's tensors to a model's: see [ReadRenaming]. Nil maps
// each to itself.
type Renaming []renaming

// renaming is a line.
type renaming struct {
	text   string // the line
	theirs *regexp.Regexp
	ours   string // with $1 for the first wildcard
}

// ReadRenaming reads a file of names, a line for each: theirs, and after a space ours. A *
// in theirs stands for any characters; those in ours are what these stood for, in order. Of
// several lines that apply, the first counts; where none does, a name stays. Blank lines,
// and those that begin with #, are skipped.
func ReadRenaming(file string) (Renaming, error) {
	text, err := regular.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, bare(err))
	}
	var r Renaming
	n := 0
	for row := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(row)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		line, err := parseRenaming(words)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		r = append(r, line)
	}
	return r, nil
}

func parseRenaming(words []string) (renaming, error) {
	if len(words) != 2 {
		return renaming{}, fmt.Errorf("%d words: give their name and ours", len(words))
	}
	stars := strings.Count(words[1], "*")
	if stars > strings.Count(words[0], "*") {
		return renaming{}, fmt.Errorf("%s has more * than %s: give each something to stand for",
			legible.Cut(words[1], 60), legible.Cut(words[0], 60))
	}
	ours := strings.ReplaceAll(words[1], "$", "$$")
	for i := range stars {
		ours = strings.Replace(ours, "*", fmt.Sprintf("${%d}", i+1), 1)
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(words[0]), `\*`, "(.*?)")
	theirs, err := regexp.Compile("^" + pattern + "$")
	return renaming{strings.Join(words, " "), theirs, ours}, err
}

// Apply is our name for one of theirs.
func (r Renaming) Apply(theirs string) string {
	ours, _ := r.apply(theirs)
	return ours
}

// apply is our name for one of theirs, and the line that says so, -1 if none does.
func (r Renaming) apply(theirs string) (ours string, line int) {
	for i, line := range r {
		if line.theirs.MatchString(theirs) {
			return line.theirs.ReplaceAllString(theirs, line.ours), i
		}
	}
	return theirs, -1
}

// fruitless reports the first line that no tensor was given a name by, or none that the model
// has: by line, applied has those names.
func (r Renaming) fruitless(applied [][]string, g *graph.Graph) error {
	known := map[string]bool{}
	for _, n := range g.Variables() {
		known[n.Name] = true
	}
	for i, names := range applied {
		has := func(name string) bool { return known[name] }
		switch {
		case len(names) == 0:
			return fmt.Errorf("line %q is of no tensor in the file, or of none that a line before "+
				"it is not of: mend it, or leave it out", r[i].text)
		case !slices.ContainsFunc(names, has):
			return fmt.Errorf("line %q makes names that the model does not have, such as %s: mend "+
				"it, or leave it out", r[i].text, names[0])
		}
	}
	return nil
}
