package data

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Packed reports whether the text is of documents for [NewPackedLoader]: each is whole, and some of
// it may be given rather than to be learnt.
func (r *Running) Packed() bool { return r.packed }

// readJSONLines makes a document of each line of a file: {"text": …}, or {"prompt": …,
// "completion": …}, whose prompt is given. Other members are passed over.
func readJSONLines(ctx context.Context, r *reader, path string) (*Running, error) {
	var all []Section
	err := r.readLongLines(ctx, path, maxDocumentBytes, func(line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		s, err := jsonDocument(line)
		all = append(all, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.corpus.Info.Noun = "document"
	out, err := r.shared(all)
	if err == nil {
		out.packed = true
	}
	return out, err
}

// maxDocumentBytes bounds a line: a document may be a book, and what is not text fails early.
const maxDocumentBytes = 64 << 20

// jsonDocument is the document of a line.
func jsonDocument(line string) (s Section, err error) {
	const remedy = `write {"text": "…"} or {"prompt": "…", "completion": "…"}`
	var in map[string]json.RawMessage
	if err := json.Unmarshal([]byte(line), &in); err != nil {
		return s, fmt.Errorf("%w: %s", err, remedy)
	}
	var text, prompt, completion *string
	for _, m := range []struct {
		name string
		to   **string
	}{{"text", &text}, {"prompt", &prompt}, {"completion", &completion}} {
		if raw := in[m.name]; raw != nil && json.Unmarshal(raw, m.to) != nil {
			return s, fmt.Errorf("%s is no string: %s", m.name, remedy)
		}
	}
	switch {
	case in["messages"] != nil || in["conversations"] != nil:
		err = errors.New("messages, which a template makes a text of: write them as prompt and " +
			"completion")
	case text != nil && (prompt != nil || completion != nil):
		err = errors.New("a text, and a prompt or completion: " + remedy)
	case text != nil:
		s = Section{Text: *text, Last: true}
	case prompt == nil || completion == nil:
		err = errors.New("no text, and no prompt with a completion: " + remedy)
	case *completion == "":
		err = errors.New("empty completion: nothing is to be learnt; remove the line")
	default:
		s = Section{Text: *prompt + *completion, Given: len(*prompt), Last: true}
	}
	if err == nil && s.Text == "" {
		err = errors.New("empty text: remove the line")
	}
	return s, err
}

// piece is a document as tokens, or a part of one that is longer than a row. Its last token is only
// predicted.
type piece struct {
	ids   []int32
	given int // tokens at the beginning that are not to be predicted, 1 or more
}

// positions are those that a piece has in a row.
func (p piece) positions() int { return len(p.ids) - 1 }

// encodePieces is the tokens of documents, in order, each with what the tokenizer puts around
// texts, or else with EOS behind it.
func encodePieces(ctx context.Context, all []Section, tok *Tokenizer) ([]piece, error) {
	var out []piece
	const group = 256
	encode := func(i int) ([]piece, error) {
		own := *tok
		own.known = map[string][]int32{}
		behind := own.after
		if eos := own.EOS(); len(behind) == 0 && eos >= 0 {
			behind = []int32{eos}
		}
		var pieces []piece
		for _, s := range all[i*group : min(len(all), (i+1)*group)] {
			ids := append([]int32(nil), own.start...)
			at := opening
			if s.Given > 0 {
				ids = own.encode(ids, s.Text[:s.Given], math.MaxInt, at)
				at = continuing
			}
			given := max(1, len(ids))
			ids = own.encode(ids, s.Text[s.Given:], math.MaxInt, at)
			pieces = append(pieces, piece{append(ids, behind...), given})
		}
		return pieces, nil
	}
	err := inOrder(ctx, (len(all)+group-1)/group, encode, func(_ int, p []piece) bool {
		out = append(out, p...)
		return true
	})
	return out, err
}

// cutPieces are the pieces of rows of so many positions at the most that have something to
// predict, and how many documents are longer.
func cutPieces(all []piece, length int) (out []piece, longer int) {
	for _, p := range all {
		if p.positions() > length {
			longer++
		}
		for p.positions() > 0 {
			n := min(p.positions(), length)
			if p.given <= n {
				out = append(out, piece{p.ids[:n+1], p.given})
			}
			p.ids, p.given = p.ids[n:], max(1, p.given-n)
		}
	}
	return out, longer
}

// packPieces puts pieces into rows of so many positions, the longest first, each where it leaves
// the least room (best fit decreasing), and where none has room into a new one. The order within a
// row is that of their placing.
func packPieces(all []piece, length int) [][]piece {
	bySize := make([][]piece, length+1)
	for _, p := range all {
		bySize[p.positions()] = append(bySize[p.positions()], p)
	}
	var rows [][]piece
	room := make([][]int, length+1) // rows by their room
	for size := length; size > 0; size-- {
		for _, p := range bySize[size] {
			left := size
			for left <= length && len(room[left]) == 0 {
				left++
			}
			at := len(rows)
			if left > length {
				left, rows = length, append(rows, nil)
			} else {
				last := len(room[left]) - 1
				at, room[left] = room[left][last], room[left][:last]
			}
			rows[at] = append(rows[at], p)
			room[left-size] = append(room[left-size], at)
		}
	}
	return rows
}
