# Terminal, fonts and defaults of all plots. Sizes and positions are in units from the upper left
# corner; they come from parameters.gp, which is read before. A unit is `zoom` pixels or points.

set encoding utf8
set decimalsign '.'
font(size) = sprintf('sans-serif,%g', size)
device_name(i) = strlen(device_names) > 0 ? word(device_names, i + 1) : sprintf('%d', i)
mark(size) = size * zoom * (format eq 'png' ? dots : 1)

# Cairo's terminals count fonts at 96 dpi.
if (format eq 'svg') {
    set terminal svg size sheet_width * zoom, sheet_height * zoom font font(font_size) \
        fontscale zoom linewidth zoom background 'white' noenhanced
}
if (format eq 'png') {
    set terminal pngcairo size sheet_width * zoom * dots, sheet_height * zoom * dots \
        font font(font_size) fontscale 0.75 * zoom * dots linewidth zoom * dots noenhanced
}
if (format eq 'pdf') {
    set terminal pdfcairo size sheet_width * zoom / 72.0, sheet_height * zoom / 72.0 \
        font font(font_size) fontscale 0.75 * zoom linewidth zoom noenhanced
}
set output output

across(x) = 1.0 * x / sheet_width
down(y) = 1.0 - 1.0 * y / sheet_height

text_colour = 0x202020
line_colour = 0x808080
grid_colour = 0xD0D0D0

set border 1 lc rgb line_colour lw 1
set tics nomirror out scale 0.5 textcolor rgb text_colour
set xtics nomirror
set ytics nomirror
set format x '%.6g'
set format y '%.6g'
unset key
set style fill solid 1 noborder
set multiplot
