package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/train"
)

// documentFlags are those of plan for rows of documents.
type documentFlags struct {
	Tokenizer location `group:"data" placeholder:"FILE"`
	Lengths   lengths  `group:"output" xor:"curve" placeholder:"N,..."`
}

// lengths are those of rows, the shortest first, each once.
type lengths []int

// UnmarshalText reads whole numbers with commas between them.
func (l *lengths) UnmarshalText(text []byte) error {
	*l = nil
	for part := range strings.SplitSeq(string(text), ",") {
		n, err := wholeNumber([]byte(part), 1, maxCount)
		if err != nil {
			return err
		}
		*l = append(*l, n)
	}
	slices.Sort(*l)
	*l = slices.Compact(*l)
	return nil
}

// maxLengths is how many lengths are compared at the most.
const maxLengths = 32

// given are the flags that are there, by name.
func (f documentFlags) given() []option {
	return []option{{"tokenizer", f.Tokenizer != ""}, {"lengths", len(f.Lengths) > 0}}
}

// documentary refuses flags that mean nothing without documents, or beside others.
func (c *planCmd) documentary() error {
	name := firstGiven([]option{{"data", c.Data != ""}}, c.documentFlags.given())
	devices, err := gomem.Several(c.Device)
	switch {
	case name == "":
		return nil
	case c.Model != "gpt":
		return usagef("plan --%s is for --model gpt, or lda: leave it out", name)
	case c.Data == "":
		return usagef("--%s needs --data jsonl:FILE: it is about documents", name)
	case !packs(string(c.Data)):
		return usagef("plan --data %s: want jsonl:FILE; other text fills rows of any length",
			c.Data)
	case len(c.Lengths) == 0:
		return nil
	case len(c.Lengths) > maxLengths:
		return usagef("--lengths has %d: want %d at the most", len(c.Lengths), maxLengths)
	case err == nil && len(devices) > 1: // an error is said with others of the device
		return usagef("--device %s has several, and --lengths is of one: name one", c.Device)
	case c.Length > 0:
		return usagef("--length is one of --lengths: leave one of them out")
	}
	name = firstGiven([]option{{"sharding", c.Sharding}, {"dump", c.Dump != ""},
		{"dump-pass", c.DumpPass != ""}, {"graph", c.Graph != ""}, {"workers", c.Workers > 0}})
	if name != "" {
		return usagef("--%s is of one plan, --lengths of several: leave one of them out", name)
	}
	return nil
}

// documents are those that the model is planned for, in rows of its length: nil where no data were
// given. The model has the sub-words that training on them would give it.
func (c *planCmd) documents(ctx context.Context, e *env) (*data.PackedLoader, error) {
	if c.Data == "" {
		return nil, nil
	}
	spec := string(c.Data)
	c.packed = true
	t := &trainCmd{modelFlags: c.modelFlags}
	config, err := gptConfig(c.modelFlags)
	if err != nil {
		return nil, err
	}
	text, err := data.Options{Progress: reading(e.stderr, spec)}.OpenRunning(ctx, spec)
	if err != nil {
		return nil, asSpec(err)
	}
	done := notice(e.stderr, "gomem: encoding "+spec)
	defer done()
	tokenizer, err := c.words(ctx, text, config.Vocab)
	if err == nil {
		err = sizeByWords(t, tokenizer, config.Vocab)
	}
	if err != nil {
		return nil, err
	}
	c.Vocabulary = t.Vocabulary
	rows := data.RunningOptions{Rows: config.Texts, Length: config.Length}
	if len(c.Lengths) > 0 { // whether they fill a batch is another question for each
		rows = data.RunningOptions{Rows: 1, Length: c.Lengths[0]}
	}
	return data.NewPackedLoader(ctx, text, tokenizer, rows)
}

// words are the sub-words of a file that was given, of the network's checkpoint, or of the text.
func (c *planCmd) words(ctx context.Context, text *data.Running, most int) (*data.Tokenizer,
	error) {
	if c.Tokenizer == "" && c.Network != "" {
		tokenizer, err := train.PublicTokenizer(c.Network)
		if err != nil {
			err = usagef("--network %s: %w", c.Network, err)
		}
		return tokenizer, err
	}
	return past{}.subWords(ctx, text, most, string(c.Tokenizer), nil)
}

// lengthPlan is what documents come to in rows of a length, within the budget.
type lengthPlan struct {
	Length      int     `json:"length"`
	Rows        int     `json:"rows"`
	Full        float64 `json:"full"` // share of the rows' positions that documents fill
	Cut         int     `json:"cut"`  // documents that are longer than a row
	MinDevice   int64   `json:"min_device_bytes"`
	Device      int64   `json:"device_peak_bytes"`
	Host        int64   `json:"host_peak_bytes"`
	PredictedMS float64 `json:"predicted_step_ms"`
	// tokens of documents a second, and the time for all documents once, by prices
	Tokens float64 `json:"tokens_per_s"`
	EpochS float64 `json:"epoch_s"`
	Why    string  `json:"why,omitempty"` // there is no plan
}

// byLengths plans for rows of several lengths.
func (c *planCmd) byLengths(ctx context.Context, e *env, all *data.PackedLoader) error {
	said := newProgress(e.stderr)
	var list []lengthPlan
	var b *built
	for i, n := range c.Lengths {
		done := said.during(fmt.Sprintf("gomem: planning rows of %d tokens (%d of %d)", n, i+1,
			len(c.Lengths)))
		p, model, err := c.atLength(ctx, n, all)
		done()
		if err != nil {
			return err
		}
		list, b = append(list, p), model
	}
	facts := documentFacts(all.Packing())
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(map[string]any{"type": "lengths",
			"model": b.model.Name, "size": b.model.Size, "documents": facts, "lengths": list})
	}
	printFields(e.stdout, []field{{"model", b.model.Name + " " + b.model.Size},
		{"batch", counted(b.model.Data[0].Type().Size(0), "row")}})
	facts.print(e.stdout)
	printLengths(e.stdout, list)
	return nil
}

// atLength plans for rows of a length.
func (c *planCmd) atLength(ctx context.Context, length int, all *data.PackedLoader) (lengthPlan,
	*built, error) {
	x := lengthPlan{Length: length}
	at := *c
	at.Length = count(length)
	b, o, err := at.begin(io.Discard, at.planFlags, at.Device)
	if err != nil {
		return x, nil, err
	}
	rows := b.model.Data[0].Type()
	shaped, err := all.Shaped(data.RunningOptions{Rows: rows.Size(0), Length: length})
	if _, few := errors.AsType[*data.Error](err); few {
		x.Why = "too few"
		return x, b, nil
	}
	if err != nil {
		return x, nil, err
	}
	if o, err = b.measured(ctx, io.Discard, o, func() {}); err != nil {
		return x, nil, err
	}
	filled := shaped.Packing()
	x.Rows, x.Cut = filled.Rows, filled.Longer
	x.Full = float64(filled.Filled) / float64(max(1, filled.Rows*filled.Length))
	p, err := planAll(ctx, io.Discard, b, o)
	if _, large := errors.AsType[*gomem.ErrOutOfMemory](err); large {
		x.Why = "no room"
		x.MinDevice, err = gomem.MinDevice(ctx, b.model.Graph, o, b.targets...)
		return x, b, b.inFlags(err, o)
	}
	if err != nil {
		return x, nil, err
	}
	if x.MinDevice, err = leastOf(ctx, p, o); err != nil {
		return x, nil, err
	}
	x.Device, x.Host = p.Peak(space.Device), p.Peak(space.Host)
	x.PredictedMS = milliseconds(stepTime(b, p))
	x.EpochS = x.PredictedMS / 1000 * float64(filled.Rows) / float64(rows.Size(0))
	x.Tokens = float64(filled.Filled) / max(x.EpochS, 1e-9)
	return x, b, nil
}

// printLengths writes a table of what lengths come to.
func printLengths(w io.Writer, list []lengthPlan) {
	t := grid.New(1, 2, 3, 4, 5, 6, 7, 8)
	t.AppendHeader(table.Row{"length", "rows", "full", "cut", "least", "device", "step",
		"tokens/s"})
	for _, x := range list {
		device, step, tokens := short(x.Device), stepText(x.PredictedMS),
			grouped(int64(x.Tokens+0.5))
		if x.Why != "" {
			device, step, tokens = x.Why, "", ""
		}
		t.AppendRow(table.Row{grouped(int64(x.Length)), grouped(int64(x.Rows)),
			fmt.Sprintf("%.1f %%", 100*x.Full), grouped(int64(x.Cut)), short(x.MinDevice), device,
			step, tokens})
	}
	fmt.Fprintln(w)
	printTable(w, t)
}

// stepText is a time of milliseconds for people.
func stepText(ms float64) string {
	if ms < 1000 {
		return fmt.Sprintf("%.3g ms", ms)
	}
	return fmt.Sprintf("%.1f s", ms/1000)
}

// documentLengths are how long documents are.
type documentLengths struct {
	Documents int             `json:"documents"`
	Median    int             `json:"median_tokens"`
	Ninety    int             `json:"tokens_at_90_percent"`
	Longest   int             `json:"longest_tokens"`
	Bins      []documentRange `json:"lengths"`
}

// documentRange are the documents of some lengths.
type documentRange struct {
	From      int `json:"from"` // tokens, both ends included
	To        int `json:"to"`
	Documents int `json:"documents"`
}

// documentFacts counts documents by their lengths, in ranges that end with powers of two.
func documentFacts(p data.Packing) documentLengths {
	lengths := slices.Sorted(slices.Values(p.Lengths))
	at := func(share float64) int { return lengths[int(share*float64(len(lengths)-1))] }
	x := documentLengths{p.Documents, at(0.5), at(0.9), at(1), nil}
	for _, n := range lengths {
		to := 1 << bits.Len(uint(max(n, 1)-1))
		if last := len(x.Bins) - 1; last >= 0 && x.Bins[last].To == to {
			x.Bins[last].Documents++
			continue
		}
		x.Bins = append(x.Bins, documentRange{to/2 + 1, to, 1})
	}
	return x
}

// fact says how long documents are, in a line.
func (x documentLengths) fact() field {
	return field{"documents", fmt.Sprintf("%s; %s tokens at the median, %s at 90 %%, %s at the "+
		"most", grouped(int64(x.Documents)), grouped(int64(x.Median)), grouped(int64(x.Ninety)),
		grouped(int64(x.Longest)))}
}

// print draws how many documents there are of each range.
func (x documentLengths) print(w io.Writer) {
	printFields(w, []field{x.fact()})
	most := 0
	for _, r := range x.Bins {
		most = max(most, r.Documents)
	}
	t := grid.New(1, 2)
	t.AppendHeader(table.Row{"tokens", "documents", ""})
	for _, r := range x.Bins {
		span := grouped(int64(r.From)) + "-" + grouped(int64(r.To))
		if r.To == 1 {
			span = strconv.Itoa(r.To)
		}
		t.AppendRow(table.Row{span, grouped(int64(r.Documents)),
			bar(float64(r.Documents), float64(most))})
	}
	fmt.Fprintln(w)
	printTable(w, t)
}
