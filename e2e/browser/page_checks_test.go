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

// screenshots is where the pictures are kept; they are written only where SCREENSHOTS=1.
const screenshots = "../../docs/screenshots"

// checkState is what every state of the page must stand: no complaint of the browser's (a policy that blocks something is one),
// nothing that axe-core finds, light and dark, and no need to scroll sideways on 320 pixels. It leaves a picture.
func (p *tab) checkState(name string) {
	p.Helper()
	p.checkLanguage(name)
	for _, scheme := range []string{"dark", "light"} {
		p.setColorScheme(scheme)
		p.checkAxe(name + ", " + scheme)
	}
	p.setWidth(320)
	if p.mustEvaluate(`document.documentElement.scrollWidth > 320`) == "true" {
		p.Errorf("%s: scrolls sideways", name)
	}
	p.setWidth(400)
	for _, consoleError := range p.browser.takeConsoleErrors(p.session) {
		if !strings.Contains(consoleError, "status of 4") && !strings.Contains(consoleError, "status of 503") { // a page that is answered as an error
			p.Errorf("%s: the browser complains: %s", name, consoleError)
		}
	}
	p.saveScreenshot(name)
}

func (p *tab) setColorScheme(light string) {
	p.Helper()
	p.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": light}}}, nil)
}

// saveScreenshot writes a picture where that is wished.
func (p *tab) saveScreenshot(name string) {
	p.Helper()
	if os.Getenv("SCREENSHOTS") != "1" {
		return
	}
	small, err := reducePalette(p.screenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(screenshots, name+".png"), small, 0o644)
	}
	if err != nil {
		p.Error(err)
	}
}

// checkLanguage looks for the language that the state's name ends in.
func (p *tab) checkLanguage(name string) {
	p.Helper()
	if lang := p.mustEvaluate(`document.documentElement.lang`); !strings.HasSuffix(name, "-"+lang) {
		p.Errorf("%s: the page's language is %q", name, lang)
	}
}

// accessibilityText is what a screen reader is given: role, name, description and state of each node, a line each.
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

// enableScripts switches the page's scripts on or off.
func (p *tab) enableScripts(on bool) {
	p.Helper()
	p.call("Emulation.setScriptExecutionDisabled", map[string]any{"value": !on}, nil)
}

// checkAxe runs axe-core with all its rules, best practices included.
func (p *tab) checkAxe(name string) {
	p.Helper()
	p.enableScripts(true) // axe-core's own timers
	defer p.enableScripts(false)
	text := p.mustEvaluate(p.axe + `;axe.run(document).then(r => JSON.stringify({passes: r.passes.length,
		violations: r.violations.map(v => ({rule: v.id, help: v.help, nodes: v.nodes.map(n => n.html + ": " + n.failureSummary)}))}))`)
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
		p.Errorf("%s: axe-core looked at %d rules", name, found.Passes)
	}
	for _, v := range found.Violations {
		p.Errorf("%s: axe-core, %s: %s\n%s", name, v.Rule, v.Help, strings.Join(v.Nodes, "\n"))
	}
}

// reducePalette gives a picture a palette of its 256 most frequent colours; the others become the nearest of them.
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

func TestShrink(t *testing.T) {
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
		t.Errorf("%v %v", err, picture.Bounds())
	}
}
