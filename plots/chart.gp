# Panels of lines or bars; titles of panels are texts of the sheet.

load programs.'/common.gp'
load programs.'/frame.gp'

at(list, i) = 1.0 * word(list, i)
set border 3 lc rgb line_colour lw 1
set grid ytics lt 1 lc rgb grid_colour lw 0.5
set xrange [x_lowest:x_highest] noextend
set yrange [y_lowest:y_highest] noextend
if (logarithmic) {
    set logscale x 2
    set logscale y 10
}
if (turned) { set xtics nomirror rotate by 90 right } else { set xtics nomirror }
do for [i = 1:n_panels] {
    set lmargin at screen across(at(lefts, i))
    set rmargin at screen across(at(rights, i))
    set tmargin at screen down(at(tops, i))
    set bmargin at screen down(at(bottoms, i))
    unset label
    if (i > n_panels - n_columns) {
        set label 1 x_title at screen across(0.5 * (at(lefts, i) + at(rights, i))), \
            down(sheet_height - 12) center textcolor rgb text_colour
    }
    if ((i - 1) % n_columns == 0) {
        set label 2 y_title at screen across(14), down(0.5 * (at(tops, i) + at(bottoms, i))) \
            center rotate by 90 textcolor rgb text_colour
    }
    if (bars) {
        plot folder.'/names.dat' using 1:(NaN):xticlabels(2) notitle, \
             folder.sprintf('/bars-%d.dat', i) using 1:4:1:2:3:4:5 with boxxyerror \
                 lc rgb variable lw 0.5 fs solid 1 border lc rgb 'white', \
             folder.sprintf('/words-%d.dat', i) using 1:2:3:4 with labels left rotate by 90 \
                 font font(word_size) textcolor rgb variable
    } else {
        plot folder.sprintf('/dashed-%d.dat', i) using 1:2:3 with lines lw 1.2 dt (5, 4) \
                 lc rgb variable, \
             folder.sprintf('/solid-%d.dat', i) using 1:2:3 with lines lw 1.8 lc rgb variable
    }
}
unset multiplot
set output
