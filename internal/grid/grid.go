// Package grid prints tables without lines, and paragraphs, for terminals.
package grid

import (
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// New is a table whose columns line up, two spaces apart. The columns of the given
// numbers, from 1, are to the right, the others to the left.
func New(right ...int) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	var columns []table.ColumnConfig
	for _, n := range right {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	return t
}

// Row is a row of strings.
func Row(cells ...string) table.Row {
	out := make(table.Row, len(cells))
	for i, c := range cells {
		out[i] = c
	}
	return out
}

// Wrap is a paragraph in lines of at most so many columns. A longer word has a line of
// its own.
func Wrap(paragraph string, columns int) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(paragraph) {
		n := utf8.RuneCountInString(word)
		switch {
		case width == 0:
		case width+1+n > columns:
			b.WriteByte('\n')
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String()
}
