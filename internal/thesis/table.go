package thesis

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/gomem/gomem/internal/grid"
)

// Table is a table or the numbers of a figure.
type Table struct {
	ID     string     `json:"id"` // as --table takes it
	Title  string     `json:"title"`
	Header []string   `json:"header"`
	Rows   [][]string `json:"rows"`
	Notes  []string   `json:"notes,omitempty"`

	figures []figure
}

func (t *Table) row(cells ...any) {
	var row []string
	for _, c := range cells {
		row = append(row, cell(c))
	}
	t.Rows = append(t.Rows, row)
}

func (t *Table) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

// cell prints numbers of any kind with few figures.
func cell(c any) string {
	switch c := c.(type) {
	case float64:
		switch {
		case c != c:
			return "-"
		case c >= 100:
			return grouped(int(c + 0.5))
		case c >= 10:
			return fmt.Sprintf("%.1f", c)
		}
		return fmt.Sprintf("%.2f", c)
	case int:
		return grouped(c)
	case int64:
		return grouped(int(c))
	}
	return fmt.Sprint(c)
}

// WriteText writes a table for people.
func (t Table) WriteText(w io.Writer) error {
	p := grid.New()
	p.Style().Options.SeparateHeader = true
	columns := []table.ColumnConfig{{Number: 1, WidthMax: 34}}
	for i := 1; i < len(t.Header); i++ {
		columns = append(columns, table.ColumnConfig{Number: i + 1, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	p.SetColumnConfigs(columns)
	p.AppendHeader(grid.Row(t.Header...))
	for _, r := range t.Rows {
		p.AppendRow(grid.Row(r...))
	}
	_, err := fmt.Fprintf(w, "%s\n\n%s\n", t.Title, p.Render())
	for _, n := range t.Notes {
		if err == nil {
			_, err = fmt.Fprintf(w, "* %s\n", n)
		}
	}
	return err
}

// WriteMarkdown writes a table for a document.
func (t Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n| %s |\n|---|%s\n", t.Title, strings.Join(t.Header, " | "),
		strings.Repeat("---:|", len(t.Header)-1))
	for _, r := range t.Rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(r, " | "))
	}
	for _, n := range t.Notes {
		fmt.Fprintf(&b, "\n%s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteCSV writes a table's header and rows.
func (t Table) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(t.Header); err != nil {
		return err
	}
	return c.WriteAll(t.Rows)
}

// WriteJSON writes a table as an object on one line.
func (t Table) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(t) }
