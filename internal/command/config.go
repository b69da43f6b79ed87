package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"

	"github.com/gomem/gomem/internal/legible"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/train"
)

// configFile is a file of flags, in YAML or JSON, by their names without hyphens in front. Those
// on the command line win.
type configFile string

// BeforeResolve reads the file, and gives the flags that are not on the command line its values.
func (configFile) BeforeResolve(ctx *kong.Context, trace *kong.Path) error {
	path, _ := ctx.FlagValue(trace.Flag).(configFile)
	flags := map[string]*kong.Flag{}
	for _, f := range ctx.Flags() {
		if f.Name != "config" && f.Name != "help" {
			flags[f.Name] = f
		}
	}
	c := config{map[string]any{}, map[string]bool{}}
	if err := c.read(string(path), flags); err != nil {
		return fmt.Errorf("--config %s: %w", path, err)
	}
	for name, f := range flags {
		c.given[name] = f.Set
	}
	ctx.AddResolver(c)
	return nil
}

// config are the flags of a file, and which are on the command line.
type config struct {
	values map[string]any
	given  map[string]bool
}

// Validate has nothing left to refuse.
func (config) Validate(*kong.Application) error { return nil }

// Resolve is the value of a flag that is not on the command line, and no other is in its place.
func (c config) Resolve(_ *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	for _, other := range parent.Flags {
		instead := slices.ContainsFunc(other.Xor, func(group string) bool {
			return slices.Contains(flag.Xor, group)
		})
		if instead && c.given[other.Name] {
			return nil, nil
		}
	}
	if c.given["resume"] && (flag.Name == "init" || flag.Name == "rename") ||
		c.given["init"] && flag.Name == "resume" {
		return nil, nil // the command line says what the run begins with
	}
	return c.values[flag.Name], nil
}

// read enters the values of a file.
func (c config) read(path string, flags map[string]*kong.Flag) error {
	values, err := readConfig(path)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if err := c.enter(flags, key, values[key]); err != nil {
			return err
		}
	}
	return nil
}

// enter enters a value of the file.
func (c config) enter(flags map[string]*kong.Flag, key string, value any) error {
	name := key
	f, ok := flags[name]
	if positive, negated := strings.CutPrefix(key, "no-"); !ok && negated {
		yes, isBool := value.(bool)
		if f, ok = flags[positive]; ok && f.Tag.Negatable != "" && isBool {
			name, value = positive, !yes
		} else {
			ok = false
		}
	}
	if !ok {
		return fmt.Errorf("there is no flag %s: %s", strconv.Quote(key), meant(key, flags))
	}
	if _, twice := c.values[name]; twice {
		return fmt.Errorf("%s is given twice, by %s too", name, key)
	}
	v, err := flagValue(value)
	if list, ok := v.([]any); ok && f.Target.Kind() != reflect.Slice {
		err = fmt.Errorf("it has %d values, want one", len(list))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	c.values[name] = v
	return nil
}

// flagValue is a value of a file as that of a flag: a text, true or false, or a list of texts.
func flagValue(value any) (any, error) {
	switch v := value.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		return v.String(), nil
	case []any:
		for i, x := range v {
			text, err := flagValue(x)
			if _, ok := text.(string); err != nil || !ok {
				return nil, fmt.Errorf("value %d of it is no text and no number", i+1)
			}
			v[i] = text
		}
		return v, nil
	case nil:
		return nil, fmt.Errorf("it has no value: give one, or leave it out")
	}
	return nil, fmt.Errorf("it has parts, want a text, a number, true or false")
}

// readConfig reads a file of flags.
func readConfig(path string) (map[string]any, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, bare(err)
	}
	if documents(string(text)) > 1 {
		return nil, errors.New("it has several documents, of which one alone would be read: " +
			"leave out the lines --- between them")
	}
	text, err = yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, fmt.Errorf("it is neither YAML nor JSON: %w", err)
	}
	var values map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&values); err != nil {
		return nil, fmt.Errorf("want flags and their values, as in steps: 300")
	}
	return values, nil
}

// documents counts those of a file of YAML that say something. A line that begins with --- or ...
// is between two of them, whatever it is in.
func documents(text string) (n int) {
	begun := false // something was said since the last such line
	for line := range strings.Lines(text) {
		rest := line
		if strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...") {
			if after := strings.TrimLeft(line[3:], " \t\r\n"); after != line[3:] || after == "" {
				begun, rest = false, after
			}
		}
		rest = strings.TrimSpace(rest)
		if rest != "" && rest[0] != '#' && line[0] != '%' && !begun {
			begun = true
			n++
		}
	}
	return n
}

// meant says which flag may be meant by a name that there is none of.
func meant(name string, flags map[string]*kong.Flag) string {
	best, least := "", len(name)/2+1
	for _, other := range slices.Sorted(maps.Keys(flags)) {
		if d := distance(name, other); d < least && !flags[other].Hidden {
			best, least = other, d
		}
	}
	if best == "" {
		return "see gomem train --help"
	}
	return "is " + best + " meant?"
}

// distance is how many letters are to be changed, put in or left out to make one word another
// (Levenshtein 1965).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// configName is the file of a run's flags beside its checkpoints.
const configName = "config.yaml"

// notRun are flags that say where a run is, when it is saved and how it is shown, rather than what
// it is.
var notRun = []string{"config", "help", "save", "save-every", "mtbf", "resume", "init", "rename",
	"metrics", "json", "trace", "profile", "samples", "log-level", "log-format", "pprof",
	"pprof-dir"}

// runFlags are the flags that a run was started with, by the command line and a file, as text.
func runFlags(ctx *kong.Context) map[string]string {
	flags := map[string]string{}
	for _, f := range ctx.Flags() {
		job := f.Group != nil && f.Group.Key == "job"
		if !f.Set || job || slices.Contains(notRun, f.Name) {
			continue
		}
		v := f.Target
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if text := fmt.Sprint(v.Interface()); text != "" {
			flags[f.Name] = text
		}
	}
	return flags
}

// keptConfig are the flags that a run keeps.
type keptConfig struct {
	flags   map[string]string // as text
	written bool
}

// keep writes the flags beside the run's first checkpoint, if this worker leads then, for another
// run like it.
func (c *keptConfig) keep(e train.Event, leads func() bool) error {
	if e.Kind != train.Save || c.written || !leads() {
		return nil
	}
	c.written = true
	text, err := configText(c.flags)
	if err != nil {
		return err
	}
	dir := filepath.Dir(e.Path)
	if err := regular.Tidy(regular.OS{}, dir, configName); err != nil {
		return err
	}
	return regular.Replace(regular.OS{}, dir, configName, func(f regular.File) error {
		_, err := f.Write(text)
		return err
	})
}

// configText is a file of flags. What does not print is quoted here, since package yaml writes some
// line breaks that it reads as spaces; and what is not UTF-8, as a path may be, YAML cannot say.
func configText(flags map[string]string) ([]byte, error) {
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		switch value := flags[name]; {
		case !utf8.ValidString(value):
			fmt.Fprintf(&text, "# %s is left out, since it is not UTF-8: give it again\n", name)
		case !legible.Is(value):
			fmt.Fprintf(&text, "%s: %s\n", name, strconv.QuoteToASCII(value))
		default:
			line, err := yaml.Marshal(map[string]string{name: value})
			if err != nil {
				return nil, err
			}
			text.Write(line)
		}
	}
	return text.Bytes(), nil
}
