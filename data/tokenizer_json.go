package data

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomem/gomem/internal/legible"
)

// tokenizerFile is a tokenizer.json. What it says beside the vocabulary is kept
// as it was read.
type tokenizerFile struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	Added         []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         bpeModel        `json:"model"`
	Ends          []int32         `json:"ends,omitempty"` // in what MarshalText writes

	changes  []change         // that bring text into its form, one after the other
	whole    map[string]int32 // if not nil: chunks that are tokens need no merges
	asTyped  names            // of added tokens, in text as it is
	inFormed names            // in text in its form
}

// addedToken is a token that no merge makes, and that text may hold by name.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

// bpeModel is the vocabulary of a tokenizer.json.
type bpeModel struct {
	Type         string          `json:"type,omitempty"`
	Dropout      json.RawMessage `json:"dropout"`
	Unknown      *string         `json:"unk_token"`
	Prefix       json.RawMessage `json:"continuing_subword_prefix"`
	Suffix       json.RawMessage `json:"end_of_word_suffix"`
	FuseUnknown  bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        vocabulary      `json:"vocab"`
	Merges       mergeList       `json:"merges"`
}

// vocabulary is written in the order of the ids.
type vocabulary map[string]int32

// MarshalJSON writes an object with its keys in the order of their ids.
func (v vocabulary) MarshalJSON() ([]byte, error) {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(v[a], v[b]), cmp.Compare(a, b))
	})
	b := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		key, err := plainJSON(name)
		if err != nil {
			return nil, err
		}
		b = fmt.Appendf(append(b, key...), ":%d", v[name])
	}
	return append(b, '}'), nil
}

// mergeList is pairs of tokens. Old files have them as "LEFT RIGHT".
type mergeList [][2]string

// UnmarshalJSON reads either form.
func (m *mergeList) UnmarshalJSON(text []byte) error {
	var pairs [][]string // an array would take two of them, whatever more there are
	if json.Unmarshal(text, &pairs) == nil {
		return m.enter(pairs)
	}
	var rows []string
	if err := json.Unmarshal(text, &rows); err != nil {
		return errors.New("merges are no list of pairs")
	}
	for i, row := range rows {
		left, right, ok := strings.Cut(row, " ")
		if !ok || strings.Contains(right, " ") {
			return fmt.Errorf("merge %d is %.40q: want two tokens with a space between", i, row)
		}
		*m = append(*m, [2]string{left, right})
	}
	return nil
}

// enter enters lists of two tokens each.
func (m *mergeList) enter(pairs [][]string) error {
	*m = nil
	if pairs != nil { // none are another thing than no list, and written as what they are
		*m = make(mergeList, len(pairs))
	}
	for i, pair := range pairs {
		if len(pair) != 2 {
			return fmt.Errorf("merge %d has %d tokens: want two", i, len(pair))
		}
		(*m)[i] = [2]string(pair)
	}
	return nil
}

// plainJSON is a value as JSON, without escapes that only HTML needs.
func plainJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// isJSON tells a tokenizer.json from the other format.
func isJSON(text []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) }

// MarshalJSON writes the tokenizer as a tokenizer.json, which what reads those of
// the Hugging Face format understands. Tokenizers of [TrainTokenizer] cut text in
// a way of their own, which that format has no words for: they give an error.
func (t *Tokenizer) MarshalJSON() ([]byte, error) {
	if t.file == nil {
		return nil, errors.New("a tokenizer of pairs of texts has no tokenizer.json: learn one " +
			"with LearnTokenizer")
	}
	return t.file.marshal()
}

func (f *tokenizerFile) marshal() ([]byte, error) {
	compact, err := plainJSON(f)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = json.Indent(&b, compact, "", "  ")
	return b.Bytes(), err
}

// UnmarshalJSON reads a tokenizer.json: byte-pair encoding of bytes, as GPT-2, LLaMA 3 and
// their relatives have it, or of characters, as SentencePiece, LLaMA 2 and Mistral. Any other
// gives an *Error that says what it has, and leaves t as it was.
func (t *Tokenizer) UnmarshalJSON(text []byte) error {
	read, err := parseTokenizer(text)
	if err != nil {
		return &Error{Spec: "tokenizer.json", Err: legible.Error(err, 400)}
	}
	*t = *read
	return nil
}

func parseTokenizer(text []byte) (*Tokenizer, error) {
	f := &tokenizerFile{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("%w: the file is damaged, or no tokenizer.json", err)
	}
	for i, a := range f.Added {
		if id, ok := f.Model.Vocab[a.Content]; ok {
			f.Added[i].ID = id // whatever the file says, as the library tokenizers has it
		}
	}
	if err := f.supported(); err != nil {
		return nil, err
	}
	stages, ofBytes, err := f.cutting()
	if err != nil {
		return nil, err
	}
	ends := f.Ends
	f.Ends = nil
	t := &Tokenizer{file: f, stages: stages, rank: map[merge]int{}}
	if t.decode, err = f.decoding(ofBytes); err != nil {
		return nil, err
	}
	if ofBytes {
		err = t.enterBytes()
	} else {
		t.chars, err = newCharacters(f)
	}
	if err != nil {
		return nil, err
	}
	if err := t.enterTokens(); err != nil {
		return nil, err
	}
	if err := t.enterMerges(); err != nil {
		return nil, err
	}
	t.index()
	if err := t.begin(); err != nil {
		return nil, err
	}
	return t.Ending(ends...), nil
}

// supported refuses what would give other ids than those the file means.
func (f *tokenizerFile) supported() error {
	m := f.Model
	switch {
	case m.Type != "BPE" && (m.Type != "" || m.Merges == nil):
		return fmt.Errorf("model of type %.40q: want BPE", m.Type)
	case !absent(m.Dropout) && !zero(m.Dropout):
		return fmt.Errorf("dropout %s: want none", oneRow(m.Dropout))
	case !absent(m.Prefix) || !absent(m.Suffix):
		return errors.New("continuing_subword_prefix or end_of_word_suffix: want none")
	}
	if err := f.normalizer(); err != nil {
		return err
	}
	for _, a := range f.Added {
		if f.text(a) == "" {
			return fmt.Errorf("added token %d is empty", a.ID)
		}
	}
	return nil
}

// text is what an added token is found by, and decoded to.
func (f *tokenizerFile) text(a addedToken) string {
	if a.Normalized {
		return f.formed(a.Content, opening)
	}
	return a.Content
}

// oneRow is what a file has, for an error's line.
func oneRow(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return "null"
	}
	return legible.Cut(b.String(), 80)
}

// absent reports whether a member says nothing.
func absent(raw json.RawMessage) bool {
	s := string(raw)
	return s == "" || s == "null" || s == `""`
}

// zero reports whether a member is the number 0.
func zero(raw json.RawMessage) bool {
	var x float64
	return json.Unmarshal(raw, &x) == nil && x == 0
}

// enterTokens gives every id its bytes.
func (t *Tokenizer) enterTokens() error {
	most := int32(-1)
	for _, id := range t.file.Model.Vocab {
		most = max(most, id)
	}
	for _, a := range t.file.Added {
		most = max(most, a.ID)
	}
	if most < 0 || most >= maxVocabulary {
		return fmt.Errorf("ids up to %d: want 0 to %d", most, maxVocabulary-1)
	}
	if have := len(t.file.Model.Vocab) + len(t.file.Added); int(most) >= mostIDs(have) {
		return fmt.Errorf("%d tokens with ids up to %d: want ids without large gaps", have, most)
	}
	t.size, t.tokens = int(most)+1, make([]string, most+1)
	for _, name := range sortedByID(t.file.Model.Vocab) {
		if err := t.enter(t.file.Model.Vocab[name], t.spelling(name)); err != nil {
			return err
		}
	}
	for _, a := range t.file.Added {
		if _, ok := t.file.Model.Vocab[a.Content]; ok {
			t.tokens[a.ID] = t.file.text(a)
		} else if err := t.enter(a.ID, t.file.text(a)); err != nil {
			return err
		}
	}
	return nil
}

// mostIDs is how many ids so many tokens may have: some for tokens that there are none of yet,
// and no more than the memory for them stands in a proportion to the file that has them.
func mostIDs(tokens int) int { return 1<<16 + 16*tokens }

func sortedByID(v vocabulary) []string {
	names := make([]string, 0, len(v))
	for name := range v {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(v[a], v[b]) })
	return names
}

// enter gives an id its bytes.
func (t *Tokenizer) enter(id int32, token string) error {
	switch {
	case id < 0:
		return fmt.Errorf("token %.40q has the id %d", token, id)
	case t.tokens[id] != "":
		return fmt.Errorf("tokens %.40q and %.40q have the id %d", t.tokens[id], token, id)
	}
	t.tokens[id] = token
	return nil
}

// spelling is a token's text, or its bytes.
func (t *Tokenizer) spelling(name string) string {
	if t.chars != nil {
		return name
	}
	return unmapped(name)
}

// enterBytes demands an id for every byte.
func (t *Tokenizer) enterBytes() error {
	for b := range 256 {
		id, ok := t.file.Model.Vocab[string(letterOf(byte(b)))]
		if !ok {
			return fmt.Errorf("no token for the byte %d, as the pre_tokenizer is ByteLevel", b)
		}
		t.bytes[b] = id
	}
	return nil
}

// enterMerges demands an id for what every merge gives.
func (t *Tokenizer) enterMerges() error {
	vocab := t.file.Model.Vocab
	for i, m := range t.file.Model.Merges {
		left, okLeft := vocab[m[0]]
		right, okRight := vocab[m[1]]
		id, ok := vocab[m[0]+m[1]]
		pair := merge{left, right}
		if _, repeated := t.rank[pair]; repeated || !okLeft || !okRight || !ok {
			return fmt.Errorf("merge %d of %.40q and %.40q: one of them or what they make is no "+
				"token, or it is there twice", i, m[0], m[1])
		}
		t.join(pair, id)
	}
	return nil
}

// letterOf is the character that stands for a byte in a tokenizer.json: itself
// where it is visible, and one from 256 on where it is not.
func letterOf(b byte) rune {
	r := rune(b)
	if visible(r) {
		return r
	}
	hidden := rune(0)
	for below := range r {
		if !visible(below) {
			hidden++
		}
	}
	return 256 + hidden
}

// visible reports whether a character of Latin-1 stands for its own byte.
func visible(r rune) bool {
	return '!' <= r && r <= '~' || '¡' <= r && r <= '¬' || '®' <= r && r <= 'ÿ'
}

// unmapped is the bytes that a token's characters stand for. A token with a character that
// stands for none, as some added tokens have, is itself.
func unmapped(token string) string {
	b := make([]byte, 0, len(token))
	for _, r := range token {
		switch {
		case r <= 0xff && visible(r):
			b = append(b, byte(r))
		case 256 <= r && int(r-256) < len(hiddenBytes):
			b = append(b, hiddenBytes[r-256])
		default:
			return token
		}
	}
	return string(b)
}

// hiddenBytes are the bytes that characters from 256 on stand for.
var hiddenBytes = func() (hidden []byte) {
	for b := range 256 {
		if !visible(rune(b)) {
			hidden = append(hidden, byte(b))
		}
	}
	return hidden
}()
