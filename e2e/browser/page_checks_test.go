package browser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// screenshots is the folder of the pictures. They are written only with SCREENSHOTS=1.
const screenshots = "../../docs/screenshots"

// checkState checks one state of the page. There must be no console error, such as one of the content policy, and no
// finding of axe-core in light or dark mode. On 320 pixels there must be no horizontal scrolling. It also takes a
// picture.
func (p *tab) checkState(name string) {
	p.Helper()
	p.checkLanguage(name)
	for _, scheme := range []string{"dark", "light"} {
		p.setColorScheme(scheme)
		p.checkAxe(name + ", " + scheme)
	}
	p.setWidth(320)
	if p.mustEvaluate(`document.documentElement.scrollWidth > 320`) == "true" {
		p.Errorf("%s: the page scrolls horizontally on 320 pixels", name)
	}
	p.setWidth(400)
	for _, consoleError := range p.browser.takeConsoleErrors(p.session) {
		// a page with an error status
		if !strings.Contains(consoleError, "status of 4") && !strings.Contains(consoleError, "status of 503") {
			p.Errorf("%s: the browser reports an error: %s", name, consoleError)
		}
	}
	p.saveScreenshot(name, wholePage)
}

// setColorScheme sets light or dark mode.
func (p *tab) setColorScheme(scheme string) {
	p.Helper()
	p.call("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// saveScreenshot takes a picture, if SCREENSHOTS=1.
func (p *tab) saveScreenshot(name string, mostHeight float64) {
	p.Helper()
	if os.Getenv("SCREENSHOTS") != "1" {
		return
	}
	small, err := reducePalette(p.screenshot(mostHeight))
	if err == nil {
		err = os.WriteFile(filepath.Join(screenshots, name+".png"), small, 0o644)
	}
	if err != nil {
		p.Error(err)
	}
}

// checkLanguage checks the language that the state's name ends with.
func (p *tab) checkLanguage(name string) {
	p.Helper()
	if lang := p.mustEvaluate(`document.documentElement.lang`); !strings.HasSuffix(name, "-"+lang) {
		p.Errorf("%s: the page's language is %q", name, lang)
	}
}

// accessibilityText returns the text for a screen reader: role, name, description and state of each node, one per
// line.
func (p *tab) accessibilityText() string {
	p.Helper()
	type value struct {
		Value any `json:"value"`
	}
	var tree struct {
		Nodes []struct {
			Ignored                 bool
			Role, Name, Description value
			Properties              []struct {
				Name  string
				Value value
			}
		}
	}
	p.call("Accessibility.getFullAXTree", nil, &tree)
	var lines []string
	for _, n := range tree.Nodes {
		if n.Ignored {
			continue
		}
		line := fmt.Sprintf("%v %q", n.Role.Value, n.Name.Value)
		if text, _ := n.Description.Value.(string); text != "" {
			line += fmt.Sprintf(" described by %q", text)
		}
		for _, property := range n.Properties {
			if property.Name == "invalid" || property.Name == "required" {
				line += fmt.Sprintf(" %s=%v", property.Name, property.Value.Value)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// enableScripts enables or disables the page's scripts.
func (p *tab) enableScripts(on bool) {
	p.Helper()
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !on}, nil)
}

// checkAxe runs axe-core with all its rules, best practices included.
func (p *tab) checkAxe(name string) {
	p.Helper()
	p.enableScripts(true) // axe-core uses timers
	defer p.enableScripts(false)
	text := p.mustEvaluate(p.axe + `;axe.run(document).then(r => JSON.stringify({passes: r.passes.length,
		violations: r.violations.map(v => ({rule: v.id, help: v.help,
			nodes: v.nodes.map(n => n.html + ": " + n.failureSummary)}))}))`)
	var found struct {
		Passes     int `json:"passes"`
		Violations []struct {
			Rule, Help string
			Nodes      []string
		}
	}
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		p.Fatalf("axe-core: %v in %s", err, text)
	}
	if found.Passes < 10 {
		p.Errorf("%s: axe-core passed %d rules, want at least 10", name, found.Passes)
	}
	for _, v := range found.Violations {
		p.Errorf("%s: axe-core, %s: %s\n%s", name, v.Rule, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// reducePalette reduces a picture to its 256 most frequent colours. Other colours become the nearest of them.
func reducePalette(raw []byte) ([]byte, error) {
	from, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	bounds, counts := from.Bounds(), map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[color.RGBAModel.Convert(from.At(x, y))]++
		}
	}
	order := func(c color.Color) string { r, g, b, a := c.RGBA(); return fmt.Sprint(r, g, b, a) }
	palette := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(order(a), order(b)))
	})
	to := image.NewPaletted(bounds, palette[:min(len(palette), 256)])
	draw.Draw(to, bounds, from, bounds.Min, draw.Src)
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to)
	return out.Bytes(), err
}

// TestReducePalette checks that a reduced picture has the same size.
func TestReducePalette(t *testing.T) {
	from := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range from.Pix {
		from.Pix[i] = uint8(i * 7)
	}
	var raw bytes.Buffer
	if err := png.Encode(&raw, from); err != nil {
		t.Fatal(err)
	}
	small, err := reducePalette(raw.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(small))
	if err != nil || picture.Bounds() != from.Bounds() {
		t.Errorf("the picture has the bounds %v, want %v (%v)", picture.Bounds(), from.Bounds(), err)
	}
}
